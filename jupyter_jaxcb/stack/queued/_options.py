"""Check the options of queued callbacks."""

from __future__ import annotations

from typing import Any

from ..core import did_you_mean

ON_FULL = ("wait", "drop")  # what to do if the queue is full


def check_queued(options: Any, *others: str | None) -> None:
    """Raise ValueError if ``queued=`` or ``on_full=`` has an invalid value or another option.

    Args:
        options: the options of a debug or io callback.
        *others: names of given options that do not go with ``queued=True``.
    """
    __tracebackhide__ = True
    if options.on_full not in ON_FULL:
        raise ValueError(
            f"unknown on_full {options.on_full!r}{did_you_mean(str(options.on_full), ON_FULL)} "
            "Pass on_full='wait' or on_full='drop'."
        )
    if options.on_full != "wait" and not options.queued:
        raise ValueError(
            f"on_full={options.on_full!r} is for queued callbacks. Pass queued=True, or drop "
            "on_full=."
        )
    for other in filter(None, others):
        if options.queued:
            raise ValueError(
                f"queued=True cannot be combined with {other}: queued calls are made by a thread "
                f"of their own. Drop queued=True or {other}."
            )


def check_nothing_returned(name: str, queued: bool, returns: bool) -> None:
    """Raise ValueError if a queued callback returns something."""
    __tracebackhide__ = True
    if queued and returns:
        raise ValueError(
            f"cannot queue the calls of {name}: the program needs its result. Declare result=None, "
            "or drop queued=True."
        )
