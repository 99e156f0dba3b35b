"""Read the text of exceptions safely, and add notes to them."""

from __future__ import annotations

import contextlib
import re

LONGEST = 2_000  # characters of a message that are passed to XLA and to recordings
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def describe(error: BaseException) -> str:
    """Return ``ValueError: no luck``, even if ``str(error)`` raises or is very long."""
    try:
        message = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as broken:  # a SystemExit, say
        return f"{type(error).__name__}: <its message raised {type(broken).__name__}>"
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]}… ({len(message):,} characters)"
    return f"{type(error).__name__}: {plain(message)}" if message else type(error).__name__


def message_of(error: BaseException) -> str:
    """Return ``no luck``, or an empty string if ``str(error)`` raises."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""


def plain(text: str) -> str:
    """Return `text` without control sequences and lone surrogates, which C++ cannot take."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")


def add_note(error: BaseException, note: str, *, instead_of: str = "") -> None:
    """Add `note` to `error`, once, even if its class forbids new attributes.

    The note replaces existing notes that begin with `instead_of`.
    """
    with contextlib.suppress(Exception):  # a class may do anything with its attributes
        notes = vars(error).setdefault("__notes__", [])
        if note not in notes:
            if instead_of:
                notes[:] = [old for old in notes if not str(old).startswith(instead_of)]
            notes.append(note)
