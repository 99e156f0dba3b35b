"""MPI workers, through mpi4py.futures."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from ...stack.options import value_word
from ._engine import Engine, ExecutorError

_START_SECONDS = 60.0  # timeout for workers to start
_LOOK_SECONDS = 0.05
_OF_A_JOB = ("PMI_", "PMIX_", "OMPI_")  # environment variables that an MPI launcher sets


def named_mpi(pool: type, name: str, count: str) -> Engine:
    """Make the engine of ``"mpi"``.

    Args:
        pool: ``mpi4py.futures.MPIPoolExecutor``.
        name: the name as the user passed it.
        count: the number of workers as digits; empty for as many as the job has.

    Raises:
        ExecutorError: if the workers do not start.
    """
    __tracebackhide__ = True
    make = functools.partial(
        pool,
        int(count) if count else None,
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C is handled by the waiting process
        main=False,  # functions are pickled by value, so workers need not run the script again
    )
    return mpi_engine(make(), name, make)


def mpi_engine(executor: Any, named: Any, make: Callable[[], Any] | None = None) -> Engine:
    """Make the engine of an ``MPIPoolExecutor``, after its workers have started.

    Raises:
        ExecutorError: if the workers do not start.
    """
    __tracebackhide__ = True
    _start(executor, value_word("executor", named))
    engine = Engine(executor, named, make=make)
    engine.by_value = True
    return engine


def _start(executor: Any, word: str) -> None:
    """Wait for the workers to start; mpi4py itself would wait forever."""
    __tracebackhide__ = True
    how = (
        "start Python with mpiexec -n 4 python -m mpi4py.futures script.py, or use "
        "executor='processes', which needs no MPI."
    )
    started = getattr(executor, "_pool", None) is not None
    if not (
        started or shutil.which("mpiexec") or any(name.startswith(_OF_A_JOB) for name in os.environ)
    ):
        raise ExecutorError(
            f"executor={word} starts its workers with mpiexec, which was not found. Add its folder "
            f"to os.environ['PATH'] first, {how}"
        )
    waiting = threading.Thread(target=executor.bootup, daemon=True)
    waiting.start()
    until = time.monotonic() + _START_SECONDS
    while waiting.is_alive():
        if time.monotonic() > until or _has_given_up(executor):
            raise ExecutorError(
                f"executor={word} has no workers: MPI did not start them. Fix the error it printed "
                f"in the terminal, {how}"
            )
        waiting.join(_LOOK_SECONDS)


def _has_given_up(executor: Any) -> bool:
    """Return whether mpi4py's thread that starts the workers has failed; False if unknown."""
    thread = getattr(getattr(executor, "_pool", None), "thread", None)
    return isinstance(thread, threading.Thread) and bool(thread.ident) and not thread.is_alive()
