"""The end of Python: programs in flight still have their lanes run."""

from __future__ import annotations

import contextlib
import math
import os
import threading

from ..dispatch import InFlight, interrupt_at_exit

_process = os.getpid()  # JAX does not work in a forked one


def finish_first() -> None:
    """Has programs in flight finished before executors end that are there by now.

    These end where the end of Python begins, and JAX waits for its programs where it is over. Who
    asks last is called first.
    """
    with contextlib.suppress(AttributeError, RuntimeError):  # another Python, or its end
        threading._register_atexit(_finish)  # type: ignore[attr-defined]


def _finish() -> None:
    if os.getpid() == _process:
        interrupt_at_exit()
        InFlight().wait(math.inf)
