"""Compiled programs: which of their sites were lowered, and the status of the others.

JAX drops dead equations just before it lowers a program, so a callback whose result is not needed
leaves no mark in what XLA gets. The jaxpr as it was before that holds every bind; the lowering rule
sees those that are left, and the optimised program holds what XLA kept of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ...recording import Aval, Compilation, Note, Outcome, Program, Recorder, active
from .. import jax_compat
from ..core import (
    Bind,
    Block,
    Found,
    expect_host_calls,
    has_thread_recorder,
    is_observing,
    listener,
    to_aval,
)
from ..jax_compat import Changes
from ._dropped import Dropped, PendingBinds, forget_all
from ._evidence import Evidence, HostCallIndex
from ._hlo import instructions_by_index
from ._identity import code_number, number
from ._outcomes import SHARED, dropped_outcome, outcome
from ._paths import Path, by_bind, paths
from ._remembered import OutcomeMemory


class _Lowering(Block):
    """One program while JAX lowers it, see `jax_compat.Watcher`."""

    def __init__(self, jaxpr: Any, name: str) -> None:
        self.number = next(_numbers)
        self.jaxpr = jaxpr
        self.name = name
        self.indices: dict[Bind, list[HostCallIndex]] = {}  # what the lowering rule saw
        self.notes: dict[Bind, Note] = {}
        self.program: Program | None = None
        self._when_compiled: list[jax_compat.Compiled] = []

    def begin(self) -> list[jax_compat.Compiled]:
        _lowerings.under_way.append(self)
        return self._when_compiled

    def leave(self, error: BaseException | None) -> None:
        if error is None and (lowered := self._done()) is not None:
            self._when_compiled.append(lowered.tell)

    def end(self) -> None:
        _lowerings.under_way = [one for one in _lowerings.under_way if one is not self]

    def _done(self) -> _Lowered | None:
        """What is to be told once it is compiled; None if it has none of our binds."""
        traced = paths(self.jaxpr)
        dispatch = jax_compat.dispatching()
        loops = _pending.loops(dispatch, self.name, by_bind(traced))
        vanished = _pending.vanished(dispatch, self.jaxpr)
        if not (traced or vanished):
            return None
        function = jax_compat.dispatched()
        return _Lowered(
            self.program or Program(f"jit_{self.name}", "", self.number),
            traced,
            self._kept(traced),
            self.indices,
            self.notes,
            vanished,
            loops,
            number(function),
            code_number(function),
            tuple(to_aval(aval) for aval in self.jaxpr.in_avals if hasattr(aval, "dtype")),
        )

    def _kept(self, traced: list[Path]) -> list[Path]:
        """The paths to our binds that JAX keeps; no need to work that out where each has one."""
        shared = any(p.bind not in self.indices and p.bind.site.flavor in SHARED for p in traced)
        if len({path.bind for path in traced}) == len(traced) and not shared:
            return [path for path in traced if path.bind in self.indices]
        return paths(jax_compat.without_dead_equations(self.jaxpr))


@dataclasses.dataclass(frozen=True)
class _Lowered:
    """One program that JAX has lowered: facts only, see `jax_compat._programs`."""

    program: Program
    traced: list[Path]
    kept: list[Path]
    indices: dict[Bind, list[HostCallIndex]]  # see `_Lowering`
    notes: dict[Bind, Note]
    vanished: list[Dropped]
    loops: dict[Bind, tuple[tuple[str, int | None], ...]]  # that they were made in, where known
    function: int  # that is compiled, and its code; 0: not known
    code: int
    arguments: tuple[Aval, ...]

    def tell(self, read: Callable[[], bytes], lower_ns: int, compile_ns: int) -> Program | None:
        """Tells what the compiled program made of each bind; the program, if its runs matter."""
        recorder = listener()
        if recorder is None:
            return None
        end = recorder.clock()
        outcomes = self._outcomes(read)
        recorder.took(
            Compilation(
                self.program,
                self.function,
                self.arguments,
                lower_ns,
                compile_ns,
                any(self.indices.values()) and jax_compat.keeps_callbacks_out_of_cache(),
                self.code,
                end,
            )
        )
        for told in outcomes:
            recorder.compiled(told)
        if has_thread_recorder():
            return None
        _memory.compiled(self.program, outcomes)
        return self.program

    def _outcomes(self, read: Callable[[], bytes]) -> list[Outcome]:
        indices = self.indices
        instructions, unreadable = (
            instructions_by_index(read) if any(indices.values()) else ({}, "")
        )
        outcomes = [dropped_outcome(gone, self.program) for gone in self.vanished]
        kept, platform = by_bind(self.kept), self.program.platform
        for bind, traced in by_bind(self.traced).items():
            own = indices.get(bind)
            seen = Evidence(
                bind,
                traced=traced,
                kept=[p for p in kept.get(bind, ()) if not p.is_barren(platform)],
                platform=platform,
                indices=own,
                instructions=None
                if unreadable
                else [
                    one._replace(each=index.elements * index.shards)
                    for index in own or ()
                    for one in instructions.get(index.number, ())
                ],
                unreadable=unreadable,
                note=self.notes.get(bind),
                loops=self.loops.get(bind),
            )
            outcomes.append(outcome(seen, self.program))
        return outcomes


class _Lowerings(threading.local):
    """Programs this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.under_way: list[_Lowering] = []


_numbers = itertools.count(1)
_memory = OutcomeMemory()
_lowerings = _Lowerings()
_pending = PendingBinds()
_uncounted: set[Program] = set()  # whose runs are not told
_told_of_own: weakref.ref[Recorder] | None = None  # who was told of JAX's own callbacks
_changes = Changes()


def bound(bind: Bind, found: Found) -> None:
    """Notes a bind of ours, while a recorder listens."""
    recorder = listener()
    if recorder is not None:
        recorder.bound(bind.site)
        _pending.bound(bind, found)


def executed(bind: Bind) -> None:
    """Notes that a bind was carried out while it was made: it is in no program."""
    _pending.executed(bind)


def lowered(
    bind: Bind, name: str, platform: str, index: HostCallIndex, note: Note | None
) -> Program:
    """Notes that the lowering rule lowers a bind; the program it goes into.

    Args:
        bind: the bind.
        name: of the program.
        platform: it is for.
        index: of its host call in the program; without batch elements it makes none.
        note: what is worth knowing of its calls.
    """
    expect_host_calls()
    if not _lowerings.under_way:
        program = Program(name, platform, next(_numbers))
        _uncounted.add(program)
        return program
    here = _lowerings.under_way[-1]
    here.indices.setdefault(bind, []).extend([index] if index.elements else [])
    if note is not None:
        here.notes[bind] = note
    if here.program is None:
        here.program = Program(name, platform, here.number)
        if not has_thread_recorder():  # what is only asked about does not run
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
    _changes.revert()  # what an interrupt has left
    _memory.tell(recorder, observed=False)
    if is_observing():
        watch_own(recorder)
    jax_compat.watch(_Watcher(look), _changes)


def watch_own(recorder: Recorder) -> None:
    """Tells `recorder` of JAX's own callbacks that were seen while an earlier one listened."""
    global _told_of_own
    if _told_of_own is None or _told_of_own() is not recorder:
        _told_of_own = weakref.ref(recorder)
        _memory.tell(recorder, observed=True)


def unwatch() -> None:
    """Stops looking, and puts JAX back as it was."""
    _changes.revert()
    forget_all()


class _Watcher:
    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    def lowering(self, jaxpr: Any, name: str) -> _Lowering:
        self._look()
        return _Lowering(jaxpr, name)

    def counts(self, program: Program) -> None:
        _memory.counts(program, True)
        _uncounted.discard(program)
        if (recorder := active()) is not None:
            recorder.counts(program)

    def ran(self, program: Program) -> None:
        if (recorder := active()) is not None:
            recorder.ran(program)

    def lost_count(self, program: Program) -> None:
        _memory.counts(program, False)
        _uncounted.add(program)
        if (recorder := active()) is not None:
            recorder.lost_count(program)
