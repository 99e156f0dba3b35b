"""Check the options of queued callbacks."""

from __future__ import annotations

from typing import Any

from ...stack import options
from ...stack.call import did_you_mean

ON_FULL = ("wait", "drop")  # what to do if the queue is full


@options.check("on_full", ON_FULL)
def _check_on_full(on_full: Any) -> Any:
    __tracebackhide__ = True
    if on_full not in ON_FULL:
        raise ValueError(
            f"unknown on_full {on_full!r}{did_you_mean(str(on_full), ON_FULL)} "
            "Pass on_full='wait' or on_full='drop'."
        )
    return on_full


options.refuse_result(
    "queued", "the program needs it at once", "Declare result=None, or drop queued=True."
)
