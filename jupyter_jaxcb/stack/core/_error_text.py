"""What an exception says: its text, also of one that cannot say it, and its notes."""

from __future__ import annotations

import contextlib
import re

LONGEST = 2_000  # characters of a message that XLA and recordings are told
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def describe(error: BaseException) -> str:
    """``ValueError: no luck``; also of an exception that cannot say what it is, or says a lot."""
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
    """``no luck``; nothing of an exception that cannot say it."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""


def plain(text: str) -> str:
    """`text` as C++ takes it and a terminal shows it: no colours, no half characters."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")


def add_note(error: BaseException, note: str, *, instead_of: str = "") -> None:
    """Adds `note`, once; a class that allows no new attributes gets it all the same.

    It takes the place of the notes that begin with `instead_of`.
    """
    with contextlib.suppress(Exception):  # whatever a class makes of its attributes
        notes = vars(error).setdefault("__notes__", [])
        if note not in notes:
            if instead_of:
                notes[:] = [old for old in notes if not str(old).startswith(instead_of)]
            notes.append(note)
