"""Check the executor options of a callback when it is registered."""

from __future__ import annotations

import concurrent.futures
import numbers
import threading
from typing import Any

from ...stack import options
from ...stack.call import did_you_mean, text_of

EXECUTORS = ("threads", "processes", "dask", "ipyparallel")
_CLIENTS = {  # module: what its clients, or the objects that they make, have
    "distributed": ("get_executor", "_client"),
    "ipyparallel": ("apply_async", "load_balanced_view"),
}
_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")  # of dask schedulers


@options.check("chunksize")
def _check_chunksize(value: Any) -> int:
    __tracebackhide__ = True
    return _number("chunksize", value, numbers.Integral, "batch elements sent together", "10")


@options.check("timeout")
def _check_timeout(value: Any) -> float:
    __tracebackhide__ = True
    return _number("timeout", value, numbers.Real, "seconds that a chunk may take", "2.5")


def _number(name: str, value: Any, kind: type, what: str, some: str) -> Any:
    """Return `value` as a Python number, or raise ValueError if the option cannot have it."""
    __tracebackhide__ = True
    if isinstance(value, kind) and not isinstance(value, bool):
        number = int(value) if kind is numbers.Integral else float(value)  # type: ignore[arg-type]
        if 0 < number < threading.TIMEOUT_MAX:
            return number
    raise ValueError(f"{name}={value!r} is not a valid number of {what}. Try {name}={some}.")


@options.check("executor")
def _check_executor(executor: Any) -> Any:
    """Return `executor`; raise if it is not an executor, or is shut down."""
    __tracebackhide__ = True
    known = ", ".join(map(repr, EXECUTORS))
    if isinstance(executor, str):
        kind, _, after = executor.partition(":")
        if (kind in EXECUTORS and _fits(kind, after)) or executor.startswith(_ADDRESSES):
            return executor
        raise ValueError(
            f"unknown executor {executor!r}{did_you_mean(kind, EXECUTORS)} Pass one of {known}, "
            "optionally with details, as in 'threads:8' or 'dask:tcp://host:8786', or a "
            "concurrent.futures.Executor."
        )
    if is_shut_down(executor):
        raise ValueError(
            f"executor {text_of(executor)} is shut down. Pass a new one, and keep it open (do not "
            "leave "
            "its `with` block) while the callback is in use."
        )
    if not isinstance(executor, concurrent.futures.Executor) and library_of(executor) is None:
        raise TypeError(
            f"executor={text_of(executor)} is not an executor. Pass one of {known}, a "
            "concurrent.futures.Executor, a distributed.Client or an ipyparallel view."
        )
    if getattr(executor, "_kwargs", {}).get("pure", True) and hasattr(executor, "_client"):
        raise ValueError(
            f"executor={text_of(executor)} runs equal calls once: that is dask's default. Pass "
            "client.get_executor(pure=False), or the client."
        )
    return executor


def _fits(kind: str, after: str) -> bool:
    """Return whether the text after the colon is valid: a number, an address or a profile."""
    if not after or kind == "ipyparallel":
        return True
    return after.startswith(_ADDRESSES) if kind == "dask" else after.isdecimal() and int(after) > 0


def library_of(executor: Any) -> str | None:
    """Return the library of a client, or of what it makes: "dask", "ipyparallel" or None."""
    root = type(executor).__module__.partition(".")[0]
    for library, members in _CLIENTS.items():
        if root == library and any(hasattr(executor, name) for name in members):
            return "dask" if library == "distributed" else library
    return None


def is_shut_down(executor: Any) -> bool:
    """Return whether the executor says it is shut down; unknown classes are found out by submit."""
    flags = getattr(executor, "_flags", None)  # loky's
    return bool(
        getattr(executor, "_shutdown", False) is True
        or getattr(executor, "_shutdown_thread", False)
        or getattr(flags, "shutdown", False)
        or getattr(executor, "status", "") in ("closed", "closing")  # a client of dask
    )


def leaves_process(executor: Any) -> bool | None:
    """Return whether batch elements run in other processes; None if unknown."""
    if isinstance(executor, str):
        return not executor.startswith("threads")
    if isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        return False
    root = type(executor).__module__.partition(".")[0]
    known = root in ("distributed", "ipyparallel", "loky", "mpi4py")
    return True if known or isinstance(executor, concurrent.futures.ProcessPoolExecutor) else None


options.refuse(
    "ordered",
    "executor",
    "ordered calls run one after the other, in program order, but an executor runs them in "
    "parallel",
)
# What cannot be sent to another process, why not, and what to do.
_STAYS = {
    "arrays": (
        "JAX arrays cannot leave their process",
        "Use arrays='numpy', or pass executor='threads'.",
    ),
    "compile": (
        "machine code cannot leave its process",
        "Drop compile=, or pass executor='threads'.",
    ),
}
for _name, _words in _STAYS.items():
    options.refuse(
        _name, "executor", *_words, applies=lambda given: bool(leaves_process(given.executor))
    )


def check_can_be_sent(name: str, given: options.Options) -> None:
    """Raise TypeError if calls of a host function with these options cannot leave the process.

    An executor of a kind that is not known shows only when it pickles them whether they do.
    """
    __tracebackhide__ = True
    for option, (reason, advice) in _STAYS.items():
        if given.given(option):
            raise TypeError(
                f"cannot send {name} to {given.spelled('executor')}: {reason}. {advice}"
            )
