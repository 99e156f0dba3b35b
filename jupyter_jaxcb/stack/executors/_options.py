"""Check the executor options of a callback when it is registered."""

from __future__ import annotations

import concurrent.futures
import numbers
import threading
from typing import Any

from ..core import ExecutorOptions, did_you_mean

EXECUTORS = ("threads", "processes", "dask", "ipyparallel", "mpi")
_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")  # of dask schedulers


def spread_of(
    executor: Any,
    chunksize: int | None,
    timeout: float | None,
    retries: int,
) -> ExecutorOptions | None:
    """Return the executor options of a callback; None without an executor.

    Raises:
        ValueError: for an unknown name, an executor that is shut down, or an option that needs an
            executor.
        TypeError: if `executor` is not an executor.
    """
    __tracebackhide__ = True
    if executor is None:
        given = ("chunksize", chunksize, None), ("timeout", timeout, None), ("retries", retries, 0)
        for name, value, default in given:
            if value is not None and value is not False and value != default:
                raise ValueError(
                    f"{name}={value!r} needs an executor: without one the host function runs on "
                    "XLA's own thread and cannot be abandoned. Pass executor='threads' too."
                )
        return None
    _check_executor(executor)
    if chunksize is not None:
        chunksize = _number(
            "chunksize", chunksize, numbers.Integral, "batch elements sent together", "10"
        )
    if timeout is not None:
        timeout = _number(
            "timeout", timeout, numbers.Real, "seconds that a batch element may take", "2.5"
        )
    retries = _number(
        "retries", retries, numbers.Integral, "times to call a batch element again", "1"
    )
    return ExecutorOptions(executor, chunksize, timeout, retries)


def check_spread(spread: ExecutorOptions | None, arrays: str, *, ordered: bool = False) -> None:
    """Raise ValueError if the executor cannot be combined with `arrays` or `ordered`."""
    __tracebackhide__ = True
    if spread is None:
        return
    if ordered:
        raise ValueError(
            "an ordered callback cannot use an executor: its calls run one after the other, in "
            f"program order, but {spread.word} runs them in parallel. "
            "Drop ordered=True or executor=."
        )
    if arrays == "jax" and leaves_process(spread.executor):
        raise ValueError(
            f"arrays='jax' cannot be combined with {spread.word}: JAX arrays cannot leave their "
            "process. Use arrays='numpy', or pass executor='threads'."
        )


def _number(name: str, value: Any, kind: type, what: str, some: str) -> Any:
    """Return `value` as a Python number, or raise ValueError if the option cannot have it."""
    __tracebackhide__ = True
    if isinstance(value, kind) and not isinstance(value, bool):
        number = int(value) if kind is numbers.Integral else float(value)  # type: ignore[arg-type]
        if 0 < number < threading.TIMEOUT_MAX or (name == "retries" and number == 0):
            return number
    raise ValueError(f"{name}={value!r} is not a valid number of {what}. Try {name}={some}.")


def _check_executor(executor: Any) -> None:
    """Raise if `executor` is not an executor, or is shut down."""
    __tracebackhide__ = True
    known = ", ".join(map(repr, EXECUTORS))
    if isinstance(executor, str):
        kind, _, after = executor.partition(":")
        if (kind in EXECUTORS and _fits(kind, after)) or executor.startswith(_ADDRESSES):
            return
        raise ValueError(
            f"unknown executor {executor!r}{did_you_mean(kind, EXECUTORS)} Pass one of {known}, "
            "optionally with details, as in 'threads:8' or 'dask:tcp://host:8786', or a "
            "concurrent.futures.Executor."
        )
    if is_shut_down(executor):
        raise ValueError(
            f"executor {executor!r} is shut down. Pass a new one, and keep it open (do not leave "
            "its `with` block) while the callback is in use."
        )
    if not isinstance(executor, concurrent.futures.Executor) and library_of(executor) is None:
        raise TypeError(
            f"executor={executor!r} is not an executor. Pass one of {known}, a "
            "concurrent.futures.Executor, a distributed.Client or an ipyparallel view."
        )


def _fits(kind: str, after: str) -> bool:
    """Return whether the text after the colon is valid: a number, an address or a profile."""
    if not after or kind == "ipyparallel":
        return True
    return after.startswith(_ADDRESSES) if kind == "dask" else after.isdecimal() and int(after) > 0


def library_of(executor: Any) -> str | None:
    """Return the library of a client, view or pool: "dask", "ipyparallel", "mpi" or None."""
    root = type(executor).__module__.partition(".")[0]
    if root == "distributed" and hasattr(executor, "get_executor"):
        return "dask"
    views = "apply_async", "load_balanced_view"
    if root == "ipyparallel" and any(hasattr(executor, name) for name in views):
        return "ipyparallel"
    return "mpi" if root == "mpi4py" and hasattr(executor, "bootup") else None


def is_shut_down(executor: Any) -> bool:
    """Return whether the executor says it is shut down; unknown classes are found out by submit."""
    flags = getattr(executor, "_flags", None)  # loky's
    return bool(
        getattr(executor, "_shutdown", False) is True
        or getattr(executor, "_shutdown_thread", False)
        or getattr(flags, "shutdown", False)
        or (library_of(executor) == "dask" and executor.status in ("closed", "closing"))
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


def stays_on_machine(executor: Any) -> bool:
    """Return whether batch elements are known to run in other processes of this machine."""
    if isinstance(executor, str):
        return executor.startswith("processes")
    root = type(executor).__module__.partition(".")[0]
    return root == "loky" or isinstance(executor, concurrent.futures.ProcessPoolExecutor)
