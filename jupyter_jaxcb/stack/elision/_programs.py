"""Watch JAX lower and compile programs, and collect the evidence about each bind in them.

JAX eliminates dead code just before it lowers a program, so XLA never gets a callback whose result
is unused. The jaxpr before that has every bind; the lowering rule is called for the remaining ones;
and the optimized program has the host calls that XLA kept.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ... import jax_compat
from ...jax_compat import Changes
from ...recording import OBSERVED, Aval, Compilation, Note, Outcome, Program, Recorder, Site, active
from ..call import Bind, is_observing, to_aval
from ..trace import Block, Found, expect_host_calls, has_thread_recorder, listener
from ._dropped import Dropped, PendingBinds, forget_all, may_be_replaced
from ._evidence import Evidence, HostCallIndex
from ._hlo import HostCallInstruction, instructions_by_index
from ._hoisting import left_loop
from ._identity import code_number, is_of_jax, number
from ._one_device import warn_of_one_device
from ._outcomes import dropped_outcome, outcome
from ._paths import Path, Place, by_bind, is_derivative, paths, sites
from ._predicates import effects_in_predicates, predicates
from ._remembered import OutcomeMemory
from ._rules import SHARED


class _Arguments(NamedTuple):
    """The arguments of a program, see `Compilation`."""

    avals: tuple[Aval, ...]
    weak: tuple[bool, ...]
    names: tuple[str, ...]


class _Lowering(Block):
    """One program while JAX lowers it, see `jax_compat.Watcher`."""

    def __init__(self, jaxpr: Any, name: str) -> None:
        self.number = next(_numbers)
        self.jaxpr = jaxpr
        self.name = name
        self.indices: dict[Bind, list[HostCallIndex]] = {}  # filled by the lowering rule
        self.notes: dict[Bind, Note] = {}
        self.on_one_device: dict[Site, None] = {}  # may have results there, see `_one_device`
        self.program: Program | None = None
        self._when_compiled: list[jax_compat.Compiled] = []

    def begin(self) -> list[jax_compat.Compiled]:
        _lowerings.under_way.append(self)
        return self._when_compiled

    def leave(self, error: BaseException | None) -> None:
        if error is not None:
            return
        if self.on_one_device:
            self._when_compiled.append(functools.partial(_look_at_results, [*self.on_one_device]))
        if _compilation_listeners:
            self._when_compiled.append(self._reporter())
        if (lowered := self._done()) is not None:
            self._when_compiled.append(lowered.report)

    def end(self) -> None:
        _lowerings.under_way = [one for one in _lowerings.under_way if one is not self]

    def _reporter(self) -> jax_compat.Compiled:
        """Return a function that reports the compilation to those who watch all programs."""
        function = jax_compat.dispatched()
        program = self.program or Program(f"jit_{self.name}", "", self.number)
        code = 0 if is_of_jax(function) else code_number(function)
        numbers, (arguments, weak, names) = (number(function), code), self._arguments()

        def report(_: Any, lower_ns: int, compile_ns: int) -> None:
            end = time.perf_counter_ns()
            done = Compilation(
                program, numbers[0], arguments, lower_ns, compile_ns, False, numbers[1], end,
                weak, names,
            )  # fmt: skip
            for tell in tuple(_compilation_listeners):
                tell(done)

        return report

    def _arguments(self) -> _Arguments:
        avals = [aval for aval in self.jaxpr.in_avals if hasattr(aval, "dtype")]
        names = jax_compat.argument_names(self.jaxpr)
        return _Arguments(
            tuple(map(to_aval, avals)),
            tuple(bool(getattr(aval, "weak_type", False)) for aval in avals),
            names if len(names) == len(avals) else (),
        )

    def _done(self) -> _Lowered | None:
        """Collect what to report once it is compiled; None if it has none of our binds."""
        traced = paths(self.jaxpr)
        dispatch = jax_compat.dispatching()
        loops = _pending.loops(dispatch, self.name, by_bind(traced))
        # Some primitives of libraries trace their implementation while they are lowered.
        inside = {bind.site for bind in self.indices}
        vanished = [
            gone for gone in _pending.vanished(dispatch, self.jaxpr) if gone.bind.site not in inside
        ]
        if (recorder := listener()) is not None and recorder.adrift:
            recorder.placed(sites(self.jaxpr).union(inside, (gone.bind.site for gone in vanished)))
        if not (traced or vanished):
            return None
        function, kept = jax_compat.dispatched(), self._kept(traced)
        return _Lowered(
            self.program or Program(f"jit_{self.name}", "", self.number),
            traced,
            kept,
            effects_in_predicates(kept),
            self.indices,
            self.notes,
            vanished,
            loops,
            number(function),
            code_number(function),
            self._arguments(),
            any(path.bind.around for path in traced) and is_derivative(self.jaxpr),
        )

    def _kept(self, traced: list[Path]) -> list[Path]:
        """Return the paths that JAX keeps; DCE is needed only if a bind has several paths."""
        shared = any(p.bind not in self.indices and p.bind.site.flavor in SHARED for p in traced)
        if len({path.bind for path in traced}) == len(traced) and not shared:
            return [path for path in traced if path.bind in self.indices]
        return paths(jax_compat.without_dead_equations(self.jaxpr))


def _look_at_results(sites: list[Site], executable: Any, *_: Any) -> None:
    warn_of_one_device(sites, jax_compat.shardings_of_results(executable))


@dataclasses.dataclass(frozen=True)
class _Lowered:
    """One program that JAX has lowered; facts only, see `jax_compat/_programs.py`."""

    program: Program
    traced: list[Path]
    kept: list[Path]
    effects: list[Path]  # see `effects_in_predicates`
    indices: dict[Bind, list[HostCallIndex]]  # see `_Lowering`
    notes: dict[Bind, Note]
    vanished: list[Dropped]
    loops: dict[Bind, tuple[tuple[str, int | None], ...]]  # around the binds, where known
    function: int  # number of the compiled function; 0 if unknown
    code: int  # number of its code; 0 if unknown
    arguments: _Arguments
    differentiated: bool  # a part of it is; False if no bind was traced in a loop or branch

    def report(self, executable: Any, lower_ns: int, compile_ns: int) -> Program | None:
        """Report the outcome of each bind to the recorder.

        If JAX's own callbacks are not observed, their outcomes are found when they will be.

        Returns:
            The program, if its runs should be counted.
        """
        recorder = listener()
        if recorder is None:
            return None
        now, later = (self, None) if is_observing() else (self._part(False), self._part(True))
        if later is not None and later.has_binds and not has_thread_recorder():
            _memory.note(executable, self.program, later.outcomes)
        if not now.has_binds:
            return None if has_thread_recorder() else self.program
        return now._report(recorder, executable, lower_ns, compile_ns)

    @property
    def has_binds(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.traced or self.vanished)

    def _part(self, of_jax: bool) -> _Lowered:
        """Return the part about our binds, or about those of JAX's own API."""

        def belongs(one: Path | Dropped) -> bool:
            return one.bind.site.flavor.startswith(OBSERVED) is of_jax

        return dataclasses.replace(
            self,
            traced=list(filter(belongs, self.traced)),
            kept=list(filter(belongs, self.kept)),
            vanished=list(filter(belongs, self.vanished)),
        )

    def _report(
        self, recorder: Recorder, executable: Any, lower_ns: int, compile_ns: int
    ) -> Program | None:
        end = recorder.clock()
        outcomes = self.outcomes(executable)
        recorder.add_compilation(
            Compilation(
                self.program,
                self.function,
                self.arguments.avals,
                lower_ns,
                compile_ns,
                any(self.indices.values()) and jax_compat.keeps_callbacks_out_of_cache(),
                self.code,
                end,
                self.arguments.weak,
                self.arguments.names,
            )
        )
        for one in outcomes:
            recorder.add_outcome(one)
        if has_thread_recorder():
            return None
        _memory.add_outcomes(self.program, outcomes)
        return self.program

    def outcomes(self, executable: Any) -> list[Outcome]:
        """Find the outcome of each bind."""
        read = functools.partial(jax_compat.optimized, executable)
        instructions, unreadable = (
            instructions_by_index(read) if any(self.indices.values()) else ({}, "")
        )
        evidence = functools.partial(self._evidence, instructions, unreadable)
        effects = [evidence(bind, own, own) for bind, own in by_bind(self.effects).items()]
        evaluated = predicates(effects, read)
        outcomes = [dropped_outcome(gone, self.program) for gone in self.vanished]
        kept = by_bind(self.kept)
        for bind, traced in by_bind(self.traced).items():
            seen = evidence(bind, traced, kept.get(bind, ()), evaluated)
            outcomes.append(outcome(seen, self.program))
        return outcomes

    def _evidence(
        self,
        instructions: Mapping[int, Sequence[HostCallInstruction]],
        unreadable: str,
        bind: Bind,
        traced: Sequence[Path],
        kept: Sequence[Path],
        evaluated: frozenset[Place] = frozenset(),
    ) -> Evidence:
        indices, platform = self.indices.get(bind), self.program.platform
        return Evidence(
            bind,
            traced=traced,
            kept=[path for path in kept if not path.is_unreachable(platform)],
            platform=platform,
            indices=indices,
            instructions=None
            if unreadable
            else [
                one._replace(each=index.elements * index.shards)
                for index in indices or ()
                for one in instructions.get(index.number, ())
            ],
            unreadable=unreadable,
            note=self.notes.get(bind),
            loops=self.loops.get(bind),
            predicates=evaluated,
            differentiated=self.differentiated,
        )


class _Lowerings(threading.local):
    """The programs that this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.under_way: list[_Lowering] = []


# JAX only looks at what it traces here, or replaces it by what a rule computes.
_NOT_FOR_A_PROGRAM = frozenset({"transpose", "derivative rule", "custom batching"})
_numbers = itertools.count(1)
_memory = OutcomeMemory()
_lowerings = _Lowerings()
_pending = PendingBinds()
_uncounted: set[Program] = set()  # programs whose runs are not counted
_observing: weakref.ref[Recorder] | None = None  # the recorder that has JAX's own callbacks
_changes = Changes()
_compilation_listeners: list[Callable[[Compilation], None]] = []


def watch_compilations(report: Callable[[Compilation], None]) -> None:
    """Report the compilation of each program, with and without callbacks, while `watch` is on."""
    _compilation_listeners.append(report)


def unwatch_compilations(report: Callable[[Compilation], None]) -> None:
    """Remove `report`, if `watch_compilations` added it."""
    _compilation_listeners[:] = [one for one in _compilation_listeners if one != report]


def bound(bind: Bind, found: Found, *, noted: bool = False) -> None:
    """Report a bind to the active recorder; a `noted` one of JAX's own API only if it vanishes."""
    recorder = listener()
    if recorder is not None:
        if not noted:
            is_for_one = found.kinds.isdisjoint(_NOT_FOR_A_PROGRAM) and not may_be_replaced(found)
            traced = is_for_one and jax_compat.is_staging()
            recorder.bound(bind.site, adrift=traced)
        _pending.bound(bind, found)


def executed(bind: Bind) -> None:
    """Note that a bind was executed eagerly, so that it is in no program."""
    _pending.executed(bind)
    if left_loop(bind) and (recorder := listener()) is not None:
        recorder.moved.add(bind.site)


def lowered(
    bind: Bind, name: str, platform: str, index: HostCallIndex, note: Note | None, *, noted: bool
) -> Program:
    """Note that the lowering rule lowers a bind.

    Args:
        bind: the bind.
        name: the name of the program.
        platform: the platform of the program.
        index: its host call in the program; with ``elements=0`` there is none.
        note: a note about its calls.
        noted: whether it is a bind of JAX's own API that is not observed: nobody waits for its
            calls.

    Returns:
        The program that the bind is lowered into.
    """
    if not noted:
        expect_host_calls()
    if not _lowerings.under_way:
        program = Program(name, platform, next(_numbers))
        if not noted:
            _uncounted.add(program)
        return program
    here = _lowerings.under_way[-1]
    here.indices.setdefault(bind, []).extend([index] if index.elements else [])
    if note is not None:
        here.notes[bind] = note
    if here.program is None:
        here.program = Program(name, platform, here.number)
    if not noted and not has_thread_recorder():  # `explain` does not run the program
        _uncounted.add(here.program)
    return here.program


def leaves_results_on_one_device(site: Site) -> None:
    """Note that the program being lowered gets results of a call of JAX's from one device."""
    if _lowerings.under_way:
        _lowerings.under_way[-1].on_one_device[site] = None


def all_counted() -> bool:
    """Return whether the runs of every program with a callback of ours are counted."""
    return not _uncounted


def watch(
    recorder: Recorder, look: Callable[[], None] = lambda: None, *, again: bool = False
) -> None:
    """Start watching every program that JAX lowers, compiles and runs.

    Programs that were compiled under an earlier recorder are reported to `recorder` first.

    Args:
        recorder: the active recorder.
        look: called whenever JAX lowers a program, on the thread that lowers it.
        again: whether it was the active recorder before, and there was no other one since.
    """
    _changes.revert()  # undo what an interrupt has left behind
    if not again:
        _memory.report(recorder, observed=False)
    if is_observing():
        watch_own(recorder)
    jax_compat.watch(_Watcher(look), _changes)


def watch_own(recorder: Recorder) -> None:
    """Report JAX's own callbacks that were observed or noted earlier to `recorder`, once."""
    global _observing
    read = _memory.read_notes()
    if _observing is None or _observing() is not recorder:
        _observing = weakref.ref(recorder)
        _memory.report(recorder, observed=True)
    else:
        _memory.report(recorder, observed=True, only=read)


def unwatch() -> None:
    """Stop watching, and undo all changes to JAX."""
    _changes.revert()
    forget_all()


class _Watcher:
    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    def lowering(self, jaxpr: Any, name: str) -> _Lowering:
        self._look()
        return _Lowering(jaxpr, name)

    def started_counting(self, program: Program) -> None:
        _memory.set_counted(program, True)
        _uncounted.discard(program)
        if (recorder := active()) is not None and not _memory.is_noted(program):
            recorder.start_counting_runs(program)

    def ran(self, program: Program) -> None:
        if (recorder := active()) is not None:
            recorder.ran(program)

    def lost_count(self, program: Program) -> None:
        _memory.set_counted(program, False)
        _uncounted.add(program)
        if (recorder := active()) is not None:
            recorder.lost_count(program)
