"""Read the text of exceptions safely, and add notes to them."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import Any, TypeGuard, TypeVar

from ...recording import visible

E = TypeVar("E", bound=BaseException)
LONGEST = 2_000  # characters of a message that are passed to XLA and to recordings
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def describe(error: BaseException) -> str:
    """Return ``ValueError: no luck``, even if ``str(error)`` raises or is very long."""
    name = name_of_class(error)
    try:
        message = str(error)
    except BaseException as broken:  # a SystemExit, say
        raise_interrupt(broken)
        return f"{name}: <its message raised {name_of_class(broken)}>"
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]}… ({len(message):,} characters)"
    return f"{name}: {plain(message)}" if message else name


def message_of(error: BaseException) -> str:
    """Return ``no luck``, or an empty string if ``str(error)`` raises."""
    try:
        return str(error)
    except BaseException as broken:
        raise_interrupt(broken)
        return ""


def plain(text: str) -> str:
    """Return `text` without control sequences and lone surrogates, which C++ cannot take."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")


def add_note(error: BaseException, note: str, *, instead_of: str = "") -> None:
    """Add `note` to `error`, once, even if its class forbids new attributes.

    The note replaces existing notes that begin with `instead_of`.
    """
    note, instead_of = visible(note), visible(instead_of)
    with contextlib.suppress(Exception):  # a class may do anything with its attributes
        notes = attribute_of(error, "__dict__").setdefault("__notes__", [])
        if note not in notes:
            if instead_of:
                notes[:] = [old for old in notes if not str(old).startswith(instead_of)]
            notes.append(note)


def is_a(error: BaseException, *kinds: type[E]) -> TypeGuard[E]:
    """As `isinstance`, which asks an object for its ``__class__``: a property may raise there."""
    return issubclass(type(error), kinds)


def attribute_of(error: BaseException, name: str) -> Any:
    """Return what Python keeps under `name`, such as ``__traceback__``, whatever the class says."""
    return BaseException.__dict__[name].__get__(error)


def name_of_class(error: BaseException) -> str:
    """Return ``ValueError``."""
    return type.__dict__["__name__"].__get__(type(error))  # a metaclass may have its own


def raise_interrupt(broken: BaseException) -> None:
    """Raise what may be Ctrl-C, which Python raises in the main thread."""
    if is_a(broken, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise broken
