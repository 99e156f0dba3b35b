"""From a bind to the line of user code it was made on."""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from ...recording import Frame, Site
from .. import jax_compat
from ._code_owner import CROSSINGS, is_cell, owner

MAX_CALLERS = 8  # of the user's frames, and twice as many of libraries
_MAX_PLACES = 4096  # that are remembered
_AROUND = {"scan", "while", "cond", "vmap"}

_T = TypeVar("_T")


class _Code:
    """Code by identity: its own hash and equality look at all of it, but not at its file."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


@functools.lru_cache(maxsize=64)
def _positions(own: _Code) -> list[tuple[int | None, int | None]]:
    """Line and column of each instruction: Python finds each by going through those before it."""
    return [(line, column) for line, _, column, _ in own.code.co_positions()]


def _remembered(make: Callable[[CodeType, int], _T]) -> Callable[[CodeType, int], _T]:
    """`make`, a cache of a code and an instruction in it in front.

    Not `functools.lru_cache`: the hash of a large code takes longer than all else here, and codes
    are equal that differ in the name of their file only.
    """
    kept: dict[tuple[int, int], tuple[CodeType, _T]] = {}  # the code, so that its id stays its own

    @functools.wraps(make)
    def look(code: CodeType, instruction: int) -> _T:
        found = kept.get((id(code), instruction))
        if found is None:
            if len(kept) >= _MAX_PLACES:
                kept.clear()
            found = kept[id(code), instruction] = code, make(code, instruction)
        return found[1]

    return look


@_remembered
def _frame(code: CodeType, instruction: int) -> Frame:
    """The place of an instruction."""
    file, library = code.co_filename, owner(code.co_filename) != "user"
    line, column = _positions(_Code(code))[instruction // 2]
    cell = not library and is_cell(file)
    return Frame(code.co_name, file, line or code.co_firstlineno, column or 0, cell, library)


@_remembered
def _source(code: CodeType, instruction: int) -> str:
    """The line of source of an instruction, stripped."""
    return linecache.getline(code.co_filename, _frame(code, instruction).line).strip()


class Found(NamedTuple):
    """The site of the bind that is being made now, and what the stack says beyond it."""

    site: Site
    around: tuple[tuple[str, int | None], ...]  # see `Bind`
    dispatches: tuple[FrameType, ...]  # of jitted functions that are called and not compiled yet
    loops: tuple[tuple[tuple[str, int | None], ...], ...]  # within each of these, innermost first
    kinds: frozenset[str]  # of all that is being traced, see `jax_compat.traced_by`


def find_site(flavor: str, function: str) -> Found:
    """Looks for the line of user code that makes a bind now.

    It is the innermost frame of user code; where there is none (a library's own thread, say) the
    innermost frame outside JAX and this package.
    """
    frames, reach, traced = _frames()
    if not frames:
        return Found(Site(flavor, function, "<unknown>", 0, 0, cell=True), *traced)
    return Found(_site(flavor, function, frames, reach), *traced)


def site_of_frames(
    flavor: str, function: str, frames: Sequence[tuple[CodeType, int]]
) -> Site | None:
    """As `find_site`, of a bind whose stack is gone: code and instruction, innermost first.

    None where no user code is in it.
    """
    own: list[tuple[CodeType, int]] = []
    reach = limit = None
    for code, instruction in frames:
        if owner(code.co_filename) != "machinery":
            own.append((code, instruction))
            if _ends_the_stack(code):
                break
        elif jax_compat.is_dispatch(code):
            reach = len(own)
        elif limit is None and jax_compat.calls_a_rule(code):
            limit = len(own)
    if all(owner(code.co_filename) != "user" for code, _ in own):
        return None
    return _site(flavor, function, own, _least(reach, limit, len(own)))


def _site(flavor: str, function: str, frames: list[tuple[CodeType, int]], reach: int) -> Site:
    """The site of a bind.

    Its callers are the library's frames up to the user's line, and the user's around that as far
    as they are in the program: who calls a compiled program is no part of it, and JAX calls rules
    of differentiation. A frame that recurs (recursion) counts once.

    Args:
        flavor: of the bind.
        function: the name of its host function.
        frames: code and instruction outside of JAX and this package, innermost first; at least one.
        reach: how many of `frames` are in the program.
    """
    innermost = next(
        (place for place, (code, _) in enumerate(frames) if owner(code.co_filename) == "user"), 0
    )
    code, instruction = frames[innermost]
    file, line, column, cell = _frame(code, instruction)[1:5]
    inside = dict.fromkeys(_frame(*one) for one in frames[:innermost])
    around = dict.fromkeys(
        _frame(*one) for one in frames[innermost + 1 : reach] if owner(one[0].co_filename) == "user"
    )
    around.pop(_frame(code, instruction), None)
    callers = (*list(inside)[: 2 * MAX_CALLERS], *list(around)[:MAX_CALLERS])
    return Site(flavor, function, file, line, column, cell, _source(code, instruction), callers)


def _ends_the_stack(code: CodeType) -> bool:
    """Whether `code` is a module of the user's: a script, a notebook cell."""
    return code.co_name == "<module>" and owner(code.co_filename) == "user"


def _frames() -> tuple[list[tuple[CodeType, int]], int, tuple[Any, Any, Any, Any]]:
    """The stack without JAX and this package, innermost first, up to the first user module.

    How many of these frames are in the program that is traced, or in the host function or rule of
    differentiation that runs: all where there is none. And what JAX's own frames tell, as in
    `Found`.
    """
    frames, around, dispatches, loops, kinds = [], [], [], [], set()
    within: list[tuple[str, int | None]] = []
    frame: FrameType | None = sys._getframe(2)
    inner = False  # the vmaps around do not map what is inside
    reach, limit, host_call = None, None, False
    while frame is not None:
        code = frame.f_code
        if owner(code.co_filename) == "machinery":
            if code in CROSSINGS:
                host_call = inner = True
            if limit is None and (host_call or jax_compat.calls_a_rule(code)):
                limit = len(frames)
            # The rule of a `jax.custom_batching.custom_vmap` has the whole batch in hand.
            inner = inner or jax_compat.has_the_batch_in_hand(code)
            traced = jax_compat.traced_by(frame)
            if traced is not None:
                if traced[0] == "dispatch":
                    dispatches.append(frame)
                    loops.append(tuple(within))
                    reach = reach if host_call else len(frames)
                elif "jit" not in kinds and not inner:
                    around.append(traced)
                if traced[0] in ("scan", "while"):
                    within.append(traced)
                kinds.add(traced[0])
            if "rule" in kinds and jax_compat.differentiates(code):
                kinds.add("derivative")
        else:
            frames.append((code, frame.f_lasti))
            if _ends_the_stack(code):
                break
        frame = frame.f_back
    inside = [traced for traced in around if traced[0] in _AROUND]
    told = tuple(inside), tuple(dispatches), tuple(loops), frozenset(kinds)
    return frames, _least(reach, limit, len(frames)), told


def _least(*counts: int | None) -> int:
    return min(count for count in counts if count is not None)
