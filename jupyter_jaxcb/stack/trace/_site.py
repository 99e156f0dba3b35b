"""Find the line of user code that makes a bind: its call site."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import NamedTuple, TypeVar

from ... import jax_compat
from ...recording import UNKNOWN_LINE, Frame, Site
from ._code_owner import CROSSINGS, is_cell, owner

MAX_CALLERS = 8  # user frames kept per site; twice as many library frames
_MAX_PLACES = 4096  # instructions kept in each cache
_AROUND = {"scan", "while", "cond", "vmap", "traced jit"}
_STRING = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_LINE_MAGIC = re.compile(rf"get_ipython\(\)\.run_line_magic\({_STRING}, {_STRING}\)$")

_T = TypeVar("_T")


class _Code:
    """A code object compared by identity: its own equality ignores the file name and is slow."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


@functools.lru_cache(maxsize=64)
def _positions(own: _Code) -> list[tuple[int | None, ...]]:
    return list(own.code.co_positions())


def position(code: CodeType, instruction: int) -> tuple[int | None, ...]:
    """Return first and last line, first and last column of the source of an instruction.

    Those of a code object are kept, because Python decodes all to find one.
    """
    return _positions(_Code(code))[instruction // 2]


def _remembered(make: Callable[[CodeType, int], _T]) -> Callable[[CodeType, int], _T]:
    """Cache `make` by code object and instruction.

    Not `functools.lru_cache`: hashing a large code object takes longer than everything else in this
    module, and code objects that differ only in their file name compare equal.
    """
    kept: dict[tuple[int, int], tuple[CodeType, _T]] = {}  # holds the code: its id is not reused

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
    """Return the frame of an instruction: function, file, line and column."""
    file, library = code.co_filename, owner(code.co_filename) != "user"
    line, _, column, _ = position(code, instruction)
    cell = not library and is_cell(file)
    return Frame(code.co_name, file, line or code.co_firstlineno, column or 0, cell, library)


@_remembered
def _source(code: CodeType, instruction: int) -> str:
    """Return the source line of an instruction, stripped."""
    frame = _frame(code, instruction)
    line = linecache.getline(code.co_filename, frame.line).strip()
    return _as_typed(line) if frame.cell else line


def _as_typed(line: str) -> str:
    """Return a line of a cell as the user typed it: IPython makes calls of line magics."""
    magic = _LINE_MAGIC.search(line)
    if magic is None:
        return line
    name, argument = map(ast.literal_eval, magic.groups())
    return f"{line[: magic.start()]}%{name} {argument}"


class Frames(NamedTuple):
    """The code that makes a bind, without a reference to its variables.

    Attributes:
        codes: code and instruction of each frame outside JAX and this package, innermost first.
        reach: how many of them belong to the program being traced, or to the running host function
            or differentiation rule; all, if there is none.
    """

    codes: Sequence[tuple[CodeType, int]]
    reach: int

    def site(self, flavor: str, function: str) -> Site:
        """Return the call site.

        It is the innermost frame of user code. If there is none (on a library's thread, for
        example), it is the innermost frame.
        """
        if not self.codes:
            return Site(flavor, function, UNKNOWN_LINE, 0, 0, cell=False)
        return _site(flavor, function, self.codes, self.reach)


class Found(NamedTuple):
    """What the stack of the bind being made now shows."""

    frames: Frames  # the code that makes the bind
    around: tuple[tuple[str, int | None], ...]  # see `Bind`
    dispatches: tuple[FrameType, ...]  # frames of jitted functions that are being compiled
    loops: tuple[tuple[tuple[str, int | None], ...], ...]  # inside each of them, innermost first
    kinds: frozenset[str]  # everything being traced, see `jax_compat.tracing`

    @property
    def in_rule(self) -> bool:
        """Whether a derivative rule makes the bind, outside of compiled functions that it calls."""
        return "derivative rule" in self.kinds


def site_of_frames(
    flavor: str, function: str, frames: Sequence[tuple[CodeType, int]]
) -> Site | None:
    """As `Frames.site`, from saved frames: code and instruction of each, innermost first.

    Returns None if none of the frames is user code.
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


_codes: dict[tuple[str, int, int], CodeType] = {}  # by file, line and column
_COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


def code_at(place: Site | Frame) -> CodeType | None:
    """Return the code of the function that `place` is in; None if it is not known.

    Inside a comprehension or the body of a class, that is the function around it, because `inspect`
    and IPython find no lines of such code. The place that runs it then has none.
    """
    return _codes.get((place.file, place.line, place.column))


def _keep_codes(frames: Sequence[tuple[CodeType, int]]) -> None:
    """Remember the code of `frames`, innermost first, for `code_at`."""
    if len(_codes) >= _MAX_PLACES:
        _codes.clear()
    parent: CodeType | None = None
    function, runs = parent, ("", 0, 0)
    for code, instruction in reversed(frames):
        _, file, line, column = _frame(code, instruction)[:4]
        if parent is not None and _is_part_of_function(code, parent):
            _codes.pop(runs, None)
        else:
            function = code
        parent, runs = code, (file, line, column)
        _codes[runs] = function or code


def _is_part_of_function(code: CodeType, caller: CodeType) -> bool:
    is_class = not code.co_flags & CO_OPTIMIZED
    return (is_class or code.co_name in _COMPREHENSIONS) and any(
        part is code for part in caller.co_consts
    )


def _site(flavor: str, function: str, frames: Sequence[tuple[CodeType, int]], reach: int) -> Site:
    """Build the site of a bind.

    Its callers are the library frames up to the user's line, and the user frames around that line
    as far as they belong to the program. The caller of a compiled program does not, and neither
    does the caller of a differentiation rule, which is JAX. A recursive frame counts once.

    Args:
        flavor: the flavor of the bind.
        function: the name of its host function.
        frames: code and instruction outside JAX and this package, innermost first; at least one.
        reach: how many of `frames` belong to the program.
    """
    innermost = next(
        (place for place, (code, _) in enumerate(frames) if owner(code.co_filename) == "user"), 0
    )
    code, instruction = frames[innermost]
    file, line, column, cell = _frame(code, instruction)[1:5]
    _keep_codes([one for one in frames[:reach] if owner(one[0].co_filename) == "user"])
    inside = dict.fromkeys(_frame(*one) for one in frames[:innermost])
    around = dict.fromkeys(
        _frame(*one) for one in frames[innermost + 1 : reach] if owner(one[0].co_filename) == "user"
    )
    around.pop(_frame(code, instruction), None)
    callers = (*list(inside)[: 2 * MAX_CALLERS], *list(around)[:MAX_CALLERS])
    return Site(flavor, function, file, line, column, cell, _source(code, instruction), callers)


class _Role(NamedTuple):
    """What a frame of some code says about the binds that are made inside it."""

    is_machinery: bool  # of JAX or this package
    ends_the_stack: bool
    is_crossing: bool
    calls_a_rule: bool
    handles_whole_batch: bool
    differentiates: bool
    tracing: jax_compat.Tracing | None


# The roles of most code: of JAX or this package, and of users and libraries.
_SAYS_NOTHING = _Role(True, False, False, False, False, False, None)
_BINDS = _SAYS_NOTHING._replace(is_machinery=False)
_MOST = {role: role for role in (_SAYS_NOTHING, _BINDS)}
_roles: dict[int, _Role] = {}  # by id of the code
_with_roles: dict[int, CodeType] = {}  # holds the code: its id is not reused


def _role(code: CodeType) -> _Role:
    """Find the role of `code`, and remember it in `_roles`."""
    found = _Role(
        owner(code.co_filename) == "machinery",
        _ends_the_stack(code),
        code in CROSSINGS,
        jax_compat.calls_a_rule(code),
        jax_compat.handles_whole_batch(code),
        jax_compat.differentiates(code),
        jax_compat.tracing(code),
    )
    if len(_roles) >= _MAX_PLACES:
        _roles.clear()
        _with_roles.clear()
    _with_roles[id(code)] = code
    role = _roles[id(code)] = _MOST.get(found, found)
    return role


def _ends_the_stack(code: CodeType) -> bool:
    """Return whether `code` is a user module: a script or a notebook cell."""
    return code.co_name == "<module>" and owner(code.co_filename) == "user"


def find_frames() -> Found:
    """Walk the stack of the bind being made now, innermost first, up to the first user module."""
    frames, around, dispatches, loops, kinds = [], [], [], [], set()
    within: list[tuple[str, int | None]] = []
    frame: FrameType | None = sys._getframe(1)
    inner = False  # the surrounding vmaps do not batch this bind
    reach, limit, host_call = None, None, False
    known, nothing, binds = _roles.get, _SAYS_NOTHING, _BINDS
    while frame is not None:
        code = frame.f_code
        role = known(id(code)) or _role(code)
        if role is binds:
            frames.append((code, frame.f_lasti))
        elif role is nothing:
            pass
        elif role.is_machinery:
            if role.is_crossing:
                host_call = inner = True
            if host_call or role.calls_a_rule:
                limit = len(frames) if limit is None else limit
                if not (host_call or dispatches):
                    kinds.add("derivative rule")
            # The rule of a `jax.custom_batching.custom_vmap` gets the whole batch.
            inner = inner or role.handles_whole_batch
            if role.tracing is not None:
                traced = role.tracing.of(frame)
                if traced[0] == "dispatch":
                    dispatches.append(frame)
                    loops.append(tuple(within))
                    reach = reach if host_call else len(frames)
                elif "jit" not in kinds and not inner:
                    around.append(traced)
                if traced[0] in ("scan", "while"):
                    within.append(traced)
                kinds.add(traced[0])
            if role.differentiates:
                kinds.add("derivative" if "rule" in kinds else "derivative of binds")
        else:
            frames.append((code, frame.f_lasti))
            if role.ends_the_stack:
                break
        frame = frame.f_back
    inside = [traced for traced in around if traced[0] in _AROUND]
    own = Frames(frames, _least(reach, limit, len(frames)))
    return Found(own, tuple(inside), tuple(dispatches), tuple(loops), frozenset(kinds))


def _least(reach: int | None, limit: int | None, count: int) -> int:
    """Return the number of frames that belong to the program."""
    reach = count if reach is None else reach
    return reach if limit is None else min(reach, limit)
