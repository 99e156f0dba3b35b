"""Workers of MPI's, through mpi4py.futures."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core import executor_word
from ._engine import Engine, ExecutorError

_START_SECONDS = 60.0  # that workers may take to start
_LOOK_SECONDS = 0.05
_OF_A_JOB = ("PMI_", "PMIX_", "OMPI_")  # variables of a process that an MPI launcher started


def named_mpi(pool: type, name: str, count: str) -> Engine:
    """The engine of ``"mpi"``.

    Args:
        pool: ``mpi4py.futures.MPIPoolExecutor``.
        name: as the user has it.
        count: of workers, in digits; empty: as many as the job has.

    Raises:
        ExecutorError: the workers do not start.
    """
    __tracebackhide__ = True
    make = functools.partial(
        pool,
        int(count) if count else None,
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # the stop button is for who waits
        main=False,  # functions travel by value: a script is not run again in each worker
    )
    return mpi_engine(make(), name, make)


def mpi_engine(executor: Any, named: Any, make: Callable[[], Any] | None = None) -> Engine:
    """The engine of an ``MPIPoolExecutor``, whose workers are there then.

    Raises:
        ExecutorError: they do not start.
    """
    __tracebackhide__ = True
    _start(executor, executor_word(named))
    engine = Engine(executor, named, make=make)
    engine.by_value = True
    return engine


def _start(executor: Any, word: str) -> None:
    """Waits for the workers; mpi4py itself would wait for ever."""
    __tracebackhide__ = True
    how = (
        "start Python as in: mpiexec -n 4 python -m mpi4py.futures script.py; executor='processes' "
        "needs no MPI."
    )
    started = getattr(executor, "_pool", None) is not None
    if not (started or shutil.which("mpiexec") or any(map(_of_a_job, os.environ))):
        raise ExecutorError(
            f"executor={word} starts its workers by mpiexec, which is not there. Put its folder in "
            f"os.environ['PATH'] first, or {how}"
        )
    waiting = threading.Thread(target=executor.bootup, daemon=True)
    waiting.start()
    until = time.monotonic() + _START_SECONDS
    while waiting.is_alive():
        if time.monotonic() > until or _has_given_up(executor):
            raise ExecutorError(
                f"executor={word} has no workers: MPI did not start them; what it said is in the "
                f"terminal. Mend that, or {how}"
            )
        waiting.join(_LOOK_SECONDS)


def _has_given_up(executor: Any) -> bool:
    """Whether the thread of mpi4py's that starts the workers has failed; False: nobody knows."""
    thread = getattr(getattr(executor, "_pool", None), "thread", None)
    return isinstance(thread, threading.Thread) and bool(thread.ident) and not thread.is_alive()


def _of_a_job(variable: str) -> bool:
    return variable.startswith(_OF_A_JOB)
