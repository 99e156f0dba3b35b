"""Compiled programs: which of their sites were lowered, and the fate of the others.

JAX drops dead equations just before it lowers a program, so a callback whose result is not needed
leaves no mark in what XLA gets. The jaxpr as it was before that holds every bind; the lowering rule
sees those that are left, and the optimised program holds what XLA kept of them.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..recording import Outcome, Program, Recorder, active
from . import _jax
from ._callback import Bind
from ._hlo import HostCallInstruction, host_calls
from ._outcomes import Seen, outcome, vanished_outcome
from ._paths import Path, paths
from ._site import Found
from ._vanishing import Vanished, Vanishing


class _Lowering:
    """One program while JAX lowers it."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.indices: dict[Bind, list[int]] = {}  # what the lowering rule saw
        self.shards: dict[Bind, int] = {}
        self.notes: dict[Bind, str] = {}
        self.program: Program | None = None


class _Lowerings(threading.local):
    """Programs this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.under_way: list[_Lowering] = []


_numbers = itertools.count(1)
MAX_PROGRAMS = 1_000  # whose outcomes are remembered; the oldest go first


class _Known:
    """What programs made of our binds, for recorders that come after they were compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._counted: set[Program] = set()

    def compiled(self, program: Program, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._outcomes[program] = outcomes
            while len(self._outcomes) > MAX_PROGRAMS:
                oldest = next(iter(self._outcomes))
                del self._outcomes[oldest]
                self._counted.discard(oldest)

    def counts(self, program: Program, counted: bool) -> None:
        with self._lock:
            (self._counted.add if counted else self._counted.discard)(program)

    def tell(self, recorder: Recorder) -> None:
        with self._lock:
            known = [told for outcomes in self._outcomes.values() for told in outcomes]
            counted = list(self._counted)
        for told in known:
            recorder.compiled(told)
        for program in counted:
            recorder.counts(program)


_known = _Known()
_lowerings = _Lowerings()
_vanishing = Vanishing()
_any_lowered = False
_undo = contextlib.ExitStack()


def bound(bind: Bind, found: Found) -> None:
    """Notes a bind of ours, while a recorder listens."""
    recorder = active()
    if recorder is not None:
        recorder.bound(bind.site)
        _vanishing.bound(bind, found)


def executed(bind: Bind) -> None:
    """Notes that a bind was carried out while it was made: it is in no program."""
    _vanishing.executed(bind)


def any_lowered() -> bool:
    """Whether there is, or was, any program with a callback of ours."""
    return _any_lowered


def lowered(
    bind: Bind, name: str, platform: str, index: int | None, shards: int, note: str
) -> Program:
    """Notes that the lowering rule lowers a bind; the program it goes into.

    Args:
        bind: the bind.
        name: of the program.
        platform: it is for.
        index: of its host call in the program; None: it makes none, as it has no lanes.
        shards: on how many devices it is called, each with its shard.
        note: what is worth knowing of its calls; may be empty.
    """
    global _any_lowered
    _any_lowered = True
    if not _lowerings.under_way:
        return Program(name, platform, next(_numbers))
    here = _lowerings.under_way[-1]
    here.indices.setdefault(bind, []).extend([] if index is None else [index])
    here.shards[bind] = shards
    here.notes[bind] = note
    if here.program is None:
        here.program = Program(name, platform, here.number)
    return here.program


def watch(recorder: Recorder) -> None:
    """Starts looking at every program that JAX lowers, compiles and runs.

    Tells `recorder` first of those that were compiled while an earlier one listened.
    """
    _known.tell(recorder)
    _undo.callback(_jax.watch(_Watcher()))


def unwatch() -> None:
    """Stops looking, and puts JAX back as it was."""
    _undo.close()


class _Watcher:
    @contextlib.contextmanager
    def lowering(self, jaxpr: Any, name: str) -> Iterator[list[_jax.Compiled]]:
        when_compiled: list[_jax.Compiled] = []
        here = _Lowering()
        _lowerings.under_way.append(here)
        try:
            yield when_compiled
        finally:
            _lowerings.under_way.pop()
        traced = paths(jaxpr)
        vanished = _vanishing.vanished(_jax.dispatching(), jaxpr)
        if traced or vanished:
            kept = _kept(jaxpr, traced, here)
            program = here.program or Program(f"jit_{name}", "", here.number)
            when_compiled.append(lambda read: _tell(program, traced, kept, vanished, here, read))

    def counts(self, program: Program) -> None:
        _known.counts(program, True)
        recorder = active()
        if recorder is not None:
            recorder.counts(program)

    def ran(self, program: Program) -> None:
        recorder = active()
        if recorder is not None:
            recorder.ran(program)

    def lost_count(self, program: Program) -> None:
        _known.counts(program, False)
        recorder = active()
        if recorder is not None:
            recorder.lost_count(program)


def _kept(jaxpr: Any, traced: list[Path], here: _Lowering) -> list[Path]:
    """The ways to our binds that JAX keeps; no need to work that out where each has one."""
    if len({path.bind for path in traced}) == len(traced):
        return [path for path in traced if path.bind in here.indices]
    return paths(_jax.without_dead_equations(jaxpr))


def _tell(
    program: Program,
    traced: list[Path],
    kept: list[Path],
    vanished: list[Vanished],
    here: _Lowering,
    read: Callable[[], str],
) -> Program | None:
    recorder = active()
    if recorder is None:
        return None
    instructions, unreadable = _instructions(here.indices, read)
    outcomes = [vanished_outcome(gone, program) for gone in vanished]
    kept_of = _by_bind(kept)
    for bind, ways in _by_bind(traced).items():
        own = here.indices.get(bind)
        seen = Seen(
            bind,
            traced=ways,
            kept=kept_of.get(bind, ()),
            indices=own,
            instructions=None
            if unreadable
            else [one for index in own or () for one in instructions.get(index, ())],
            unreadable=unreadable,
            shards=here.shards.get(bind, 1),
            note=here.notes.get(bind, ""),
        )
        outcomes.append(outcome(seen, program))
    _known.compiled(program, outcomes)
    for told in outcomes:
        recorder.compiled(told)
    return program


def _by_bind(ways: list[Path]) -> dict[Bind, list[Path]]:
    grouped: dict[Bind, list[Path]] = {}
    for path in ways:
        grouped.setdefault(path.bind, []).append(path)
    return grouped


def _instructions(
    indices: dict[Bind, list[int]], read: Callable[[], str]
) -> tuple[dict[int, list[HostCallInstruction]], str]:
    """The host calls of the optimised program by index; or why they are not known."""
    if not any(indices.values()):
        return {}, ""
    try:
        return host_calls(read()), ""
    except Exception as error:  # whatever a later JAX or XLA does differently
        return {}, f"{type(error).__name__}: {error}"
