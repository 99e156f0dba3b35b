"""Check the executor options of a callback when it is registered."""

from __future__ import annotations

import concurrent.futures
import numbers
import threading
from typing import Any

from ...stack import options
from ...stack.call import did_you_mean, text_of

EXECUTORS = ("threads", "processes", "dask", "ipyparallel")
_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")  # of dask schedulers
_CLIENTS = {  # what clients of a library, or the objects that they make, have
    "distributed": ("get_executor", "_client"),
    "ipyparallel": ("apply_async", "load_balanced_view"),
}


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
        kind, after = kind_of(executor)
        is_count = after.isdecimal() and int(after) > 0
        fits = {"dask": after.startswith(_ADDRESSES), "ipyparallel": True}.get(kind, is_count)
        if kind in EXECUTORS and (fits or not after):
            return executor
        raise ValueError(
            f"unknown executor {executor!r}{did_you_mean(kind, EXECUTORS)} Pass one of {known}, "
            "optionally with details, as in 'threads:8' or 'dask:tcp://host:8786', or a "
            "concurrent.futures.Executor."
        )
    if is_shut_down(executor):
        raise ValueError(
            f"executor {text_of(executor)} is shut down. Pass a new one, and keep it open (do not "
            "leave its `with` block) while the callback is in use."
        )
    if not isinstance(executor, concurrent.futures.Executor) and not library_of(executor):
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


def kind_of(name: str) -> tuple[str, str]:
    """Split the name of an executor: its kind, and the text after the colon."""
    kind, _, after = name.partition(":")
    return ("dask", name) if name.startswith(_ADDRESSES) else (kind, after)


def library_of(executor: Any) -> str:
    """Return the library of a client, or of what it makes; empty for other executors."""
    root = type(executor).__module__.partition(".")[0]
    return root if any(hasattr(executor, name) for name in _CLIENTS.get(root, ())) else ""


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
for _option, _reason, _advice in (
    ("arrays", "JAX arrays cannot leave their process", "Use arrays='numpy'"),
    ("compile", "machine code cannot leave its process", "Drop compile="),
):
    options.refuse(
        _option, "executor", _reason, f"{_advice}, or pass executor='threads'.",
        applies=lambda given: leaves_process(given.executor) is not False,
    )  # fmt: skip
