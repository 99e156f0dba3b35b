"""The notice that no host call of the running cell returns."""

from __future__ import annotations

from ...diagnostics import Hang, HangKind

_LOOKS_LIKE = {
    HangKind.DEADLOCK: "a deadlock",
    HangKind.FULL_QUEUE: "a full queue",
    HangKind.GIL: "a thread that holds the GIL",
    HangKind.SLOW: "a slow function",
    HangKind.COLLECTIVE: "a collective operation that waits for a device",
    HangKind.PROGRAM: "a long or endless loop in a compiled program",
    HangKind.LOCK: "a wait for a lock or another thread",
    HangKind.UNKNOWN: "a wait for something outside, such as a file or a connection",
}


def hang_title(hang: Hang) -> str:
    """Return one line: for how long no host call has returned, and what that looks like."""
    seconds = f" for {hang.seconds:,.0f} s" if hang.seconds else ""
    return f"No host call has returned{seconds}. This looks like {_LOOKS_LIKE[hang.kind]}."


def hang_message(hang: Hang, stacks: str) -> dict[str, str]:
    """Return the notice for the live view."""
    return {"title": hang_title(hang), "text": hang.text, "stacks": stacks}
