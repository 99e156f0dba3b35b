"""Watch JAX lower, compile and run programs, and find the outcome of each bind in them.

JAX eliminates dead code just before it lowers a program, so XLA never gets a callback whose result
is unused. The jaxpr before that has every bind (`_asked`); the lowering rule is called for the
remaining ones (`lowered`); and the optimized program has the host calls that XLA kept (`_made`).
`_verdict` compares them. Binds that JAX drops while it traces are in no jaxpr (`_dropped`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ... import jax_compat
from ...jax_compat import Changes
from ...recording import (
    OBSERVED,
    Compilation,
    Note,
    Outcome,
    Program,
    Reason,
    Recorder,
    Site,
    Status,
    active,
)
from ..call import Bind, is_observing, to_aval
from ..trace import Block, Found, expect_host_calls, has_thread_recorder, listener
from ._asked import Path, Step, count_of_jax, is_derivative, paths
from ._compiling import listen_no_longer, listen_to_stages
from ._dropped import Dropped, PendingBinds, forget_all, may_be_replaced
from ._identity import code_number, is_of_jax, number
from ._made import HostCall, host_calls
from ._one_device import warn_of_one_device
from ._verdict import LOWERED_ONCE, Evidence, HostCallIndex, dropped_outcome, is_moved, outcome

MAX_PROGRAMS = 1_000  # whose outcomes are remembered; the oldest are dropped first

# JAX only looks at what it traces here, or replaces it by what a rule computes.
_NOT_FOR_A_PROGRAM = frozenset({"transpose", "custom batching"})


class _Lowering(Block):
    """One program while JAX lowers it, see `jax_compat.Watcher`."""

    def __init__(self, jaxpr: Any, name: str) -> None:
        self.jaxpr = jaxpr
        # Its platform is known when the first call is lowered.
        self.program = Program(f"jit_{name}", "", next(_numbers))
        self.name = name
        self.indices: dict[Bind, list[HostCallIndex]] = {}  # filled by the lowering rule
        self.notes: dict[Bind, Note] = {}
        self.on_one_device: dict[Site, None] = {}  # may have results there, see `_one_device`
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
            function = jax_compat.function_of(jax_compat.dispatching())
            compilation = self._compilation(function)
            if is_of_jax(function):
                compilation = compilation._replace(code=0)
            self._when_compiled.append(functools.partial(_report, compilation))
        if (lowered := self._lowered()) is not None:
            self._when_compiled.append(lowered.report)

    def end(self) -> None:
        _lowerings.under_way = [one for one in _lowerings.under_way if one is not self]

    def _compilation(self, function: Any) -> Compilation:
        """Return what is known of the compilation of `function` before it has happened."""
        avals = [aval for aval in self.jaxpr.in_avals if hasattr(aval, "dtype")]
        names = jax_compat.argument_names(self.jaxpr)
        return Compilation(
            self.program, number(function), tuple(map(to_aval, avals)), 0, 0,
            not_cached=any(self.indices.values()) and jax_compat.keeps_callbacks_out_of_cache(),
            code=code_number(function),
            weak=tuple(bool(getattr(aval, "weak_type", False)) for aval in avals),
            names=names if len(names) == len(avals) else (),
        )  # fmt: skip

    def _lowered(self) -> _Lowered | None:
        """Collect what to report once it is compiled; None if it has none of our binds."""
        by_bind: dict[Bind, list[Path]] = {}
        # Some primitives of libraries trace their implementation while they are lowered.
        there = {bind.site for bind in self.indices}
        for path in paths(self.jaxpr, self.program.platform):
            assert path.bind is not None
            there.add(path.bind.site)
            if not path.carried:
                by_bind.setdefault(path.bind, []).append(path)
        dispatch = jax_compat.dispatching()
        loops = _pending.loops(dispatch, self.name, by_bind)
        vanished = _pending.vanished(dispatch, there)
        if (recorder := listener()) is not None and recorder.adrift:
            recorder.placed(there.union(gone.bind.site for gone in vanished))
        if recorder is not None and not is_observing() and (count := count_of_jax(self.jaxpr)):
            recorder.add(not_observed=count)
        if not (by_bind or vanished):
            return None
        # Which of the paths JAX keeps, where calls of several are lowered as one.
        shared: set[Bind] = set()
        if any(bind.site.flavor == LOWERED_ONCE and bind not in self.indices for bind in by_bind):
            alive = paths(jax_compat.without_dead_equations(self.jaxpr), self.program.platform)
            alive = [path.bind for path in alive if path.bind and not path.carried]
            shared = {bind for bind in alive if bind not in self.indices}
        compilation = self._compilation(jax_compat.function_of(dispatch))
        return _Lowered(
            compilation, by_bind, self.indices, self.notes, vanished,
            loops, any(bind.around for bind in by_bind) and is_derivative(self.jaxpr),
            {bind for bind in shared if bind.site.flavor == LOWERED_ONCE},
        )  # fmt: skip


def _look_at_results(sites: list[Site], executable: Any, *_: Any) -> None:
    warn_of_one_device(sites, jax_compat.shardings_of_results(executable))


def _report(compilation: Compilation, _: Any, lower_ns: int, compile_ns: int) -> None:
    done = compilation._replace(
        lower_ns=lower_ns, compile_ns=compile_ns, end_ns=time.perf_counter_ns(), not_cached=False
    )
    for report in tuple(_compilation_listeners):
        report(done)


@dataclasses.dataclass(frozen=True)
class _Lowered:
    """One program that JAX has lowered; facts only, see `jax_compat/_programs.py`."""

    compilation: Compilation
    paths: dict[Bind, list[Path]]
    indices: dict[Bind, list[HostCallIndex]]  # see `_Lowering`
    notes: dict[Bind, Note]
    vanished: list[Dropped]
    loops: dict[Bind, tuple[Step, ...]]  # around the binds, where they are known
    differentiated: bool  # a part of it is; False if no bind was traced in a loop or branch
    shared: set[Bind]  # their calls were lowered together with equal ones

    def report(self, executable: Any, lower_ns: int, compile_ns: int) -> Program | None:
        """Report the outcome of each bind to the recorder.

        If JAX's own callbacks are not observed, their outcomes are found when they will be.

        Returns:
            The program, if its runs should be counted.
        """
        recorder, program = listener(), self.compilation.program
        if recorder is None:
            return None
        part, alone = self, has_thread_recorder()  # whose programs do not run
        if not is_observing() and any(
            map(_is_jaxs, (*self.paths, *(d.bind for d in self.vanished)))
        ):
            part, later = self._part(of_jax=False), self._part(of_jax=True)
            if not alone:
                _memory.note(executable, program, later.outcomes)
        if part.has_binds:
            end, outcomes = recorder.clock(), part.outcomes(executable)
            recorder.add_compilation(
                self.compilation._replace(lower_ns=lower_ns, compile_ns=compile_ns, end_ns=end)
            )
            for one in outcomes:
                recorder.add_outcome(one)
            if not alone:
                _memory.add_outcomes(program, outcomes)
        return None if alone else program

    @property
    def has_binds(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.paths or self.vanished)

    def _part(self, *, of_jax: bool) -> _Lowered:
        """Return the part about our binds, or about those of JAX's own API."""
        return dataclasses.replace(
            self,
            paths={bind: own for bind, own in self.paths.items() if _is_jaxs(bind) is of_jax},
            vanished=[gone for gone in self.vanished if _is_jaxs(gone.bind) is of_jax],
        )

    def outcomes(self, executable: Any) -> list[Outcome]:
        """Find the outcome of each bind."""
        program, made, unreadable = self.compilation.program, {}, ""
        if any(self.indices.values()):
            try:
                made = host_calls(jax_compat.optimized(executable))
            except Exception as error:  # a later JAX or XLA may differ in any way
                unreadable = f"{type(error).__name__}: {error}"
        found = [dropped_outcome(gone.bind, gone.transposed, program) for gone in self.vanished]
        for bind, of_bind in self.paths.items():
            evidence = Evidence(
                bind, of_bind, self.indices.get(bind),
                None if unreadable else self._made(bind, made), unreadable,
                self.notes.get(bind), self.loops.get(bind), self.differentiated,
                bind in self.shared,
            )  # fmt: skip
            try:
                found.append(outcome(evidence, program))
            except Exception as error:  # the report says so; the user's program goes on
                found.append(
                    Outcome(
                        bind.site, program, Status.UNKNOWN, reason=Reason.UNREADABLE,
                        detail=f"{type(error).__name__}: {error}",
                    )
                )  # fmt: skip
        return found

    def _made(self, bind: Bind, made: Mapping[int, Sequence[HostCall]]) -> list[HostCall]:
        return [
            call._replace(each=index.elements * index.shards)
            for index in self.indices.get(bind, ())
            for call in made.get(index.number, ())
        ]


def _is_jaxs(bind: Bind) -> bool:
    return bind.site.flavor.startswith(OBSERVED)


class _Lowerings(threading.local):
    """The programs that this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.under_way: list[_Lowering] = []


class _Memory:
    """The outcomes of compiled programs, for recorders that start later, and which are counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._counted: set[Program] = set()
        # Programs with callbacks of JAX's own API that were not observed yet, while they exist: how
        # to find their outcomes, given the executable.
        self._noted: dict[Program, tuple[weakref.ref[Any], Callable[[Any], list[Outcome]]]] = {}

    def add_outcomes(self, program: Program, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._outcomes[program] = [*self._outcomes.get(program, ()), *outcomes]
            while len(self._outcomes) > MAX_PROGRAMS:
                oldest = next(iter(self._outcomes))
                del self._outcomes[oldest]
                self._counted.discard(oldest)

    def note(self, executable: Any, program: Program, find: Callable[[Any], list[Outcome]]) -> None:
        """Remember how to find the outcomes of a program, until `executable` dies."""

        def forget(_: Any) -> None:  # without the lock: this thread may hold it
            if self._noted.pop(program, None) is not None and program not in self._outcomes:
                self._counted.discard(program)

        self._noted[program] = weakref.ref(executable, forget), find

    def is_noted(self, program: Program) -> bool:
        """Whether the program was never observed, and has only callbacks of JAX's own API."""
        return program in self._noted and program not in self._outcomes

    def read_notes(self) -> list[Program]:
        """Find the outcomes of all noted programs; return these programs."""
        read = []
        for program in list(self._noted):
            reference, find = self._noted.pop(program, (None, None))
            executable = None if reference is None else reference()
            if executable is not None and find is not None:
                self.add_outcomes(program, find(executable))
                read.append(program)
        return read

    def set_counted(self, program: Program, counted: bool) -> None:
        with self._lock:
            (self._counted.add if counted else self._counted.discard)(program)

    def report(
        self, recorder: Recorder, observed: bool, only: Collection[Program] | None = None
    ) -> None:
        """Report our callbacks to `recorder`, or if `observed` JAX's own callbacks.

        Args:
            recorder: the recorder.
            observed: see above.
            only: the programs to report; None: all.
        """
        with self._lock:
            outcomes = [
                one
                for program, of_program in self._outcomes.items()
                if only is None or program in only
                for one in of_program
                if one.site.flavor.startswith(OBSERVED) is observed
            ]
            counted = [program for program in self._counted if not self.is_noted(program)]
        for one in outcomes:
            recorder.add_earlier_outcome(one)
        for program in counted:
            recorder.start_counting_runs(program)


_numbers = itertools.count(1)
_memory = _Memory()
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
            aside = bind.in_rule or may_be_replaced(bind, found)
            is_for_one = not aside and found.kinds.isdisjoint(_NOT_FOR_A_PROGRAM)
            traced = is_for_one and jax_compat.is_staging()
            recorder.bound(bind.site, adrift=traced)
        _pending.bound(bind, found)


def executed(bind: Bind) -> None:
    """Note that a bind was executed eagerly, so that it is in no program."""
    _pending.executed(bind)
    if is_moved(bind) and (recorder := listener()) is not None:
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
    if not here.program.platform:
        here.program = Program(name, platform, here.program.number)
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
    _changes.make(listen_to_stages, listen_no_longer)


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
