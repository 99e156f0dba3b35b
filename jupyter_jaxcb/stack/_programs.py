"""Compiled programs: which of their sites were lowered, and the fate of the others.

JAX drops dead equations just before it lowers a program, so a callback whose result is not needed
leaves no mark in what XLA gets. The jaxpr as it was before that holds every bind; the lowering rule
sees those that are left, and the optimised program holds what XLA kept of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ..recording import Aval, Compilation, Outcome, Program, Recorder, active
from . import _jax
from ._avals import to_aval
from ._callback import Bind
from ._hlo import instructions_by_index
from ._known import Known
from ._observed import is_observing
from ._outcomes import SHARED, outcome, vanished_outcome
from ._paths import Path, by_bind, paths
from ._seen import Seen
from ._site import Found
from ._vanishing import Vanished, Vanishing, forget_all
from ._which import code_number, number


class _Lowering:
    """One program while JAX lowers it."""

    def __init__(self, jaxpr: Any, name: str) -> None:
        self.number = next(_numbers)
        self.jaxpr = jaxpr
        self.name = name
        self.indices: dict[Bind, list[int]] = {}  # what the lowering rule saw
        self.shards: dict[Bind, int] = {}
        self.notes: dict[Bind, str] = {}
        self.program: Program | None = None

    def done(self) -> _Lowered | None:
        """What is to be told once it is compiled; None if it has none of our binds."""
        traced = paths(self.jaxpr)
        dispatch = _jax.dispatching()
        loops = _vanishing.loops(dispatch, self.name, by_bind(traced))
        vanished = _vanishing.vanished(dispatch, self.jaxpr)
        if not (traced or vanished):
            return None
        return _Lowered(
            self,
            self.program or Program(f"jit_{self.name}", "", self.number),
            traced,
            self._kept(traced),
            vanished,
            loops,
            _jax.dispatched(),
            tuple(to_aval(aval) for aval in self.jaxpr.in_avals if hasattr(aval, "dtype")),
        )

    def _kept(self, traced: list[Path]) -> list[Path]:
        """The ways to our binds that JAX keeps; no need to work that out where each has one."""
        shared = any(p.bind not in self.indices and p.bind.site.flavor in SHARED for p in traced)
        if len({path.bind for path in traced}) == len(traced) and not shared:
            return [path for path in traced if path.bind in self.indices]
        return paths(_jax.without_dead_equations(self.jaxpr))


@dataclasses.dataclass(frozen=True)
class _Lowered:
    """One program that JAX has lowered."""

    seen: _Lowering
    program: Program
    traced: list[Path]
    kept: list[Path]
    vanished: list[Vanished]
    loops: dict[Bind, tuple[tuple[str, int | None], ...]]  # that they were made in, where known
    function: Any  # that is compiled, where known
    arguments: tuple[Aval, ...]

    def tell(self, read: Callable[[], str], lower_ns: int, compile_ns: int) -> Program | None:
        """Tells what the compiled program made of each bind; the program, if its runs matter."""
        recorder = listener()
        if recorder is None:
            return None
        end = recorder.clock()
        outcomes = self._outcomes(read)
        recorder.took(
            Compilation(
                self.program,
                number(self.function),
                self.arguments,
                lower_ns,
                compile_ns,
                any(self.seen.indices.values()) and _jax.keeps_callbacks_out_of_cache(),
                code_number(self.function),
                end,
            )
        )
        for told in outcomes:
            recorder.compiled(told)
        if _lowerings.asking is not None:
            return None
        _known.compiled(self.program, outcomes)
        return self.program

    def _outcomes(self, read: Callable[[], str]) -> list[Outcome]:
        indices = self.seen.indices
        instructions, unreadable = (
            instructions_by_index(read) if any(indices.values()) else ({}, "")
        )
        outcomes = [vanished_outcome(gone, self.program) for gone in self.vanished]
        kept = by_bind(self.kept)
        for bind, ways in by_bind(self.traced).items():
            own = indices.get(bind)
            seen = Seen(
                bind,
                traced=ways,
                kept=kept.get(bind, ()),
                indices=own,
                instructions=None
                if unreadable
                else [one for index in own or () for one in instructions.get(index, ())],
                unreadable=unreadable,
                shards=self.seen.shards.get(bind, 1),
                note=self.seen.notes.get(bind, ""),
                loops=self.loops.get(bind),
            )
            outcomes.append(outcome(seen, self.program))
        return outcomes


class _Lowerings(threading.local):
    """Programs this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.under_way: list[_Lowering] = []
        self.asking: Recorder | None = None  # hears of them instead of the active one


_numbers = itertools.count(1)
_known = Known()
_lowerings = _Lowerings()
_vanishing = Vanishing()
_any_lowered = False
_uncounted: set[Program] = set()  # whose runs are not told
_told_of_own: weakref.ref[Recorder] | None = None  # who was told of JAX's own callbacks
_undo = contextlib.ExitStack()


def bound(bind: Bind, found: Found) -> None:
    """Notes a bind of ours, while a recorder listens."""
    recorder = listener()
    if recorder is not None:
        recorder.bound(bind.site)
        _vanishing.bound(bind, found)


def executed(bind: Bind) -> None:
    """Notes that a bind was carried out while it was made: it is in no program."""
    _vanishing.executed(bind)


def listener() -> Recorder | None:
    """Who hears of what this thread traces, lowers and compiles, if anyone."""
    return _lowerings.asking or active()


@contextlib.contextmanager
def asking(recorder: Recorder) -> Iterator[None]:
    """Tells `recorder` alone of what this thread traces, lowers and compiles meanwhile."""
    previous, _lowerings.asking = _lowerings.asking, recorder
    try:
        yield
    finally:
        _lowerings.asking = previous


def any_lowered() -> bool:
    """Whether there is, or was, any program with a callback that is recorded."""
    return _any_lowered


def calls_may_come() -> None:
    """Notes that host calls may come which no program of ours makes."""
    global _any_lowered
    _any_lowered = True


def lowered(
    bind: Bind, name: str, platform: str, index: int | None, shards: int, note: str
) -> Program:
    """Notes that the lowering rule lowers a bind; the program it goes into.

    Args:
        bind: the bind.
        name: of the program.
        platform: it is for.
        index: of its host call in the program; None: it makes none, as it has no lanes.
        shards: on how many devices of this process it is called.
        note: what is worth knowing of its calls; may be empty.
    """
    global _any_lowered
    _any_lowered = True
    if not _lowerings.under_way:
        program = Program(name, platform, next(_numbers))
        _uncounted.add(program)
        return program
    here = _lowerings.under_way[-1]
    here.indices.setdefault(bind, []).extend([] if index is None else [index])
    here.shards[bind] = shards
    here.notes[bind] = note
    if here.program is None:
        here.program = Program(name, platform, here.number)
        _uncounted.add(here.program)
    return here.program


def all_counted() -> bool:
    """Whether the runs of every program with a callback of ours are told."""
    return not _uncounted


def watch(recorder: Recorder, look: Callable[[], None] = lambda: None) -> None:
    """Starts looking at every program that JAX lowers, compiles and runs.

    Tells `recorder` first of those that were compiled while an earlier one listened.

    Args:
        recorder: the active one.
        look: called whenever JAX lowers a program, on the thread that has it do so.
    """
    _known.tell(recorder, observed=False)
    if is_observing():
        watch_own(recorder)
    _undo.callback(_jax.watch(_Watcher(look)))


def watch_own(recorder: Recorder) -> None:
    """Tells `recorder` of JAX's own callbacks that were seen while an earlier one listened."""
    global _told_of_own
    if _told_of_own is None or _told_of_own() is not recorder:
        _told_of_own = weakref.ref(recorder)
        _known.tell(recorder, observed=True)


def unwatch() -> None:
    """Stops looking, and puts JAX back as it was."""
    _undo.close()
    forget_all()


class _Watcher:
    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    @contextlib.contextmanager
    def lowering(self, jaxpr: Any, name: str) -> Iterator[list[_jax.Compiled]]:
        self._look()
        when_compiled: list[_jax.Compiled] = []
        here = _Lowering(jaxpr, name)
        _lowerings.under_way.append(here)
        try:
            yield when_compiled
        finally:
            _lowerings.under_way.pop()
        if (lowered := here.done()) is not None:
            when_compiled.append(lowered.tell)

    def counts(self, program: Program) -> None:
        _known.counts(program, True)
        _uncounted.discard(program)
        recorder = active()
        if recorder is not None:
            recorder.counts(program)

    def ran(self, program: Program) -> None:
        recorder = active()
        if recorder is not None:
            recorder.ran(program)

    def lost_count(self, program: Program) -> None:
        _known.counts(program, False)
        _uncounted.add(program)
        recorder = active()
        if recorder is not None:
            recorder.lost_count(program)
