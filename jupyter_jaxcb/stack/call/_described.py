"""What the recording says of the calls of a callback: each capability adds its part."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...recording import Note, VmapLevel
from ..options import Options
from ._callback import HostCallback


class Topic(enum.IntEnum):
    """What a note is about: of several notes on a callback, the recording has the first."""

    WHEN = 0  # its calls are made
    HOW = 1  # the host function is entered
    INSIDE = 2  # the host function


_Notes = Callable[[HostCallback, str, Sequence[VmapLevel]], Note | None]
_Look = Callable[[Callable[..., Any], Options], None]
_Noting = TypeVar("_Noting", bound=_Notes)
_notes: list[tuple[Topic, _Notes]] = []
_marks: dict[str, tuple[Callable[[HostCallback], bool], bool]] = {}
_looks: list[_Look] = []
_varying: list[Callable[[HostCallback], bool]] = []


def notes(topic: Topic) -> Callable[[_Noting], _Noting]:
    """Register what notes something on a callback, given the platform and the vmap levels."""

    def register(note: _Noting) -> _Noting:
        _notes.append((topic, note))
        _notes.sort(key=lambda registered: registered[0])
        return note

    return register


def marks(name: str, applies: Callable[[HostCallback], bool], *, eager: bool = True) -> None:
    """Register the field of `LoweredSite` that is true for some callbacks; `eager`: or calls."""
    _marks[name] = applies, eager


def note_on(callback: HostCallback, platform: str, levels: Sequence[VmapLevel]) -> Note | None:
    """Return the note on a callback that is lowered for a platform."""
    return next(filter(None, (note(callback, platform, levels) for _, note in _notes)), None)


def marks_of(callback: HostCallback, *, eager: bool = True) -> dict[str, Any]:
    """Return the fields of `LoweredSite` that capabilities have registered, by name."""
    registered = _marks.items()
    return {name: applies(callback) for name, (applies, both) in registered if both or not eager}


def varies(applies: Callable[[HostCallback], bool]) -> None:
    """Register callbacks of which data decides how many calls a crossing makes."""
    _varying.append(applies)


def is_varying(callback: HostCallback) -> bool:
    """Return whether data decides how many calls a crossing makes."""
    return any(applies(callback) for applies in _varying)


def drop_ins(look: _Look) -> None:
    """Register what looks at the function of a callback that no decorator has registered."""
    _looks.append(look)


def look_at_drop_in(function: Callable[..., Any], options: Options) -> None:
    """Look at a function that is called by `pure_callback` or `io_callback`."""
    __tracebackhide__ = True
    for look in _looks:
        look(function, options)
