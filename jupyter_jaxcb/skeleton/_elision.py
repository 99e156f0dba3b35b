"""Asked and made: how many host calls a program's text asks for, and how many it makes compiled.

JAX drops an unused equation before it lowers a program, XLA merges, moves and drops custom calls.
So the jaxpr before both says what is asked for, with the loops around each bind, and the optimized
HLO what is made, with the loops around each custom call. `verdict` compares the two.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import jax_compat
from ._recording import Aval, Program, Recorder, SiteRecord, Verdict, VmapLevel

_numbers = itertools.count(1)  # of programs


class Place(NamedTuple):
    """One way in which a run reaches a host call: in the jaxpr a path, in HLO an instruction."""

    times: int | None  # per run; None: depends on data
    loops: int  # around it


# ---- what the program text asks for


def asked(jaxpr: Any, times: int | None = 1, loops: int = 0) -> Iterator[tuple[Any, Place]]:
    """Yield the equation of each of our binds in `jaxpr`, with each path to it."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        name, params = equation.primitive.name, equation.params
        if name == "jaxcb_host_call":
            yield equation, Place(times, loops)
        elif name == "scan":
            # JAX writes `unroll` copies of the body into the loop, and the iterations that are left
            # after it; with a single turn, it writes them without a loop.
            turns, rest = divmod(params["length"], params["unroll"])
            inside, after = (params["unroll"], rest) if turns > 1 else (0, params["length"])
            for _ in range(inside):
                yield from asked(params["jaxpr"], times and times * turns, loops + 1)
            for _ in range(after):
                yield from asked(params["jaxpr"], times, loops)
            if not params["length"]:
                yield from asked(params["jaxpr"], 0, loops + 1)
        elif name == "while":
            yield from asked(params["cond_jaxpr"], None, loops + 1)
            yield from asked(params["body_jaxpr"], None, loops + 1)
        elif name == "cond":
            for branch in params["branches"]:
                yield from asked(branch, None, loops)
        else:
            for value in params.values():
                for inner in value if isinstance(value, tuple) else (value,):
                    if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                        yield from asked(inner, times, loops)


# ---- what the compiled program makes

_COMPUTATION = re.compile(r"(ENTRY )?%([^ ]+) \(.*\{$")
_HOST_CALL = re.compile(r'custom_call_target="xla_ffi_python_\w+".*\{index = (\d+) : ui64\}')
_WHILE = re.compile(r" while\(.*condition=%([^ ,]+), body=%([^ ,]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_BRANCHES = re.compile(r"(?:branch_computations=\{|true_computation=|false_computation=)([^}]*)")
_CALLED = re.compile(r"(?:calls|to_apply)=%([^ ,]+)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')  # holds the names that the user chose
_RELEVANT = re.compile(r"^(?:ENTRY )?%|=%|=\{%|custom_call_target")


def made(hlo: str) -> dict[int, list[Place]]:
    """Return the host calls in the text of an optimized program, by their index.

    Raises:
        ValueError: the text has another structure.
    """
    callers: dict[str, list[tuple[str, int | None, int]]] = {}  # computation, times, loops
    host_calls: list[tuple[int, str]] = []
    computation = entry = ""
    for line in filter(_RELEVANT.search, hlo.splitlines()):
        if begin := _COMPUTATION.match(line):
            computation = begin[2]
            entry = computation if begin[1] else entry
            continue
        if call := _HOST_CALL.search(line):
            host_calls.append((int(call[1]), computation))
            continue
        trips, line = _TRIPS.search(line), _STRING.sub("", line)
        if loop := _WHILE.search(line):
            times = int(trips[1]) if trips else None
            # XLA does not evaluate the condition of a loop whose number of turns it knows.
            callers.setdefault(loop[1], []).append((computation, 0 if trips else None, 1))
            callers.setdefault(loop[2], []).append((computation, times, 1))
            continue
        for branches in _BRANCHES.findall(line):
            for name in re.findall(r"%([^ ,}]+)", branches):
                callers.setdefault(name, []).append((computation, None, 0))
        once = " fusion(" in line or " call(" in line or " async-start(" in line
        for name in _CALLED.findall(line):
            callers.setdefault(name, []).append((computation, 1 if once else None, 0))
    if not entry:
        raise ValueError("the program has no entry computation")
    reached: dict[str, list[Place]] = {entry: [Place(1, 0)]}

    def places(name: str) -> list[Place]:
        if name not in reached:
            reached[name] = []  # HLO has no recursion
            for caller, times, loops in callers.get(name, ()):
                for around in places(caller):
                    if times is None or around.times is None:
                        total = None
                    else:
                        total = times * around.times
                    reached[name].append(Place(total, loops + around.loops))
        return reached[name]

    instructions: dict[int, list[Place]] = {}
    for index, name in host_calls:
        instructions.setdefault(index, []).extend(places(name))
    return instructions


# ---- the verdict


def verdict(
    wanted: Sequence[Place],
    compiled: Sequence[Place],
    is_lowered: bool,
    each: int,
    has_side_effect: bool,
) -> Verdict:
    """Compare what is asked for with what is made.

    Args:
        wanted: the paths in the jaxpr.
        compiled: the instructions in the optimized HLO.
        is_lowered: whether JAX kept the equation.
        each: host calls at a time, one for each batch element.
        has_side_effect: whether XLA must keep the calls.
    """
    total, count = _total(wanted, each), _total(compiled, each)
    wanted = [place for place in wanted if place.times != 0]
    compiled = [place for place in compiled if place.times != 0]
    if total == 0:
        return Verdict("not_reached", 0, 0, "never_reached")
    if not is_lowered:
        return Verdict("unused", total, 0, "result_unused")
    if total is not None and count is not None and count >= total:
        return Verdict("kept", total, count)
    if not compiled:
        reason = "never_reached" if has_side_effect else "result_not_needed"
        return Verdict("optimized_away", total, 0, reason)
    depths, depths_asked = (sorted(place.loops for place in some) for some in (compiled, wanted))
    if has_side_effect:
        return Verdict("kept", total, count)
    # Loops are compared before places: with as many places in fewer loops, a call has left its
    # loop. With fewer places in fewer loops, some left theirs and others were merged or dropped.
    shallower = depths[-1] < depths_asked[-1]
    if len(depths) < len(depths_asked):
        status = ("fewer", "fewer") if shallower else ("deduplicated", "equal_calls")
    elif shallower or (len(depths) == len(depths_asked) and sum(depths) < sum(depths_asked)):
        status = "hoisted", "loop_invariant"
    else:
        status = ("kept", "") if count is None or total is None else ("fewer", "fewer")
    return Verdict(status[0], total, count, status[1])


def _total(places: Sequence[Place], each: int) -> int | None:
    times = [place.times for place in places]
    return None if None in times else sum(times) * each  # type: ignore[arg-type]


def after_runs(record: SiteRecord, calls: int) -> Verdict:
    """Return the verdict with what only runs show: that a program or a branch did not run."""
    compiled, program = record.verdict, record.program
    if compiled.status != "kept" or calls or program is None:
        return compiled
    if program.runs == 0:
        return compiled._replace(status="not_run", reason="not_run")
    if program.runs and compiled.made is None:
        return compiled._replace(status="not_reached", reason="not_reached")
    return compiled


# ---- watching JAX lower and compile


class _Bind:
    """One bind in a program, from the jaxpr to the verdict."""

    def __init__(self, equation: Any, program: Program) -> None:
        params, avals = equation.params, [one.aval for one in equation.invars]
        self.has_side_effect = bool(equation.effects)
        self.each = math.prod(level.size for level in params["levels"])
        self.paths: list[Place] = []
        self.indices: list[int] = []  # of its host calls in the program
        self.record = site_record(**params, arrays=avals, program=program)

    def decide(self, instructions: dict[int, list[Place]] | None) -> None:
        if instructions is None and self.indices:
            asked_for = _total(self.paths, self.each)
            self.record.verdict = Verdict("unknown", asked_for, None, "unreadable")
            return
        compiled = [
            place for index in self.indices for place in (instructions or {}).get(index, ())
        ]
        self.record.verdict = verdict(
            self.paths, compiled, bool(self.indices), self.each, self.has_side_effect
        )


def site_record(
    callback: Any, levels: tuple[VmapLevel, ...], result_avals: Any, arrays: Any, program: Any
) -> SiteRecord:
    """Return the record of a bind, with the shapes that one host call sees."""
    operands = tuple(
        Aval(tuple(x.shape[sum(level.batched[i] for level in levels) :]), x.dtype.name)
        for i, x in enumerate(arrays)
    )
    results = tuple(Aval(tuple(y.shape[len(levels) :]), y.dtype.name) for y in result_avals)
    return SiteRecord(
        callback.site, program, operands, results, levels, Verdict("kept", None, None)
    )


class _UnderWay(threading.local):
    def __init__(self) -> None:
        self.programs: list[dict[Any, _Bind]] = []  # that this thread lowers; they nest


_under_way = _UnderWay()


def lowered(callback: Any, levels: tuple[VmapLevel, ...], index: int) -> SiteRecord | None:
    """Note that a bind is lowered; return its record, or None if nobody records."""
    bind = _under_way.programs[-1].get((callback, levels)) if _under_way.programs else None
    if bind is None:
        return None
    bind.indices.append(index)
    return bind.record


class Watcher:
    """Receives JAX's programs, see `jax_compat.watch`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @contextlib.contextmanager
    def lowering(self, jaxpr: Any, name: str) -> Iterator[list[Any]]:
        """Collect what a program asks for, and what is lowered; and decide once it is compiled."""
        program, binds = Program(next(_numbers), f"jit_{name}", jax_compat.backend_name()), {}
        for equation, place in asked(jaxpr):
            key = equation.params["callback"], equation.params["levels"]
            if key not in binds:
                binds[key] = _Bind(equation, program)
            binds[key].paths.append(place)
        _under_way.programs.append(binds)
        try:
            yield [functools.partial(self._decide, program, binds)] if binds else []
        finally:
            _under_way.programs.pop()

    def _decide(
        self, program: Program, binds: dict[Any, _Bind], executable: Any, *_: int
    ) -> Program:
        (module,) = executable.xla_executable.hlo_modules()
        try:
            instructions = made(module.to_string())
        except ValueError:
            instructions = None
        for bind in binds.values():
            bind.decide(instructions)
            self._recorder.number(bind.record)
        return program

    def started_counting(self, program: Program) -> None:
        """Count the runs of a program from now on."""
        program.runs = program.runs or 0

    def ran(self, program: Program) -> None:
        """Count a run."""
        if program.runs is not None:
            program.runs += 1

    def lost_count(self, program: Program) -> None:
        """Stop counting: JAX no longer says which program of a function ran."""
        program.runs = None
