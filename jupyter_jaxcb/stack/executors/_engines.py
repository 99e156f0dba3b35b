"""From the name of an executor, or an object, to an engine.

No library is imported before it is named.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import importlib
import math
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from ..core import ExecutorOptions
from ..dispatch import InFlight, interrupt_at_exit
from ._engine import Engine, ExecutorError, cores
from ._mpi import mpi_engine, named_mpi
from ._options import library_of

CONNECT_SECONDS = 10.0  # to a scheduler
_REMOTE_NS = 20_000_000  # of batch elements that are sent together over a network, at least
_IDLE_SECONDS = 300  # after which a worker process ends
_NEEDS = {
    "loky": ("processes", "loky and cloudpickle"),
    "cloudpickle": ("processes", "loky and cloudpickle"),
    "distributed": ("dask", "dask's distributed"),
    "ipyparallel": ("ipyparallel", "ipyparallel"),
    "mpi4py.futures": ("mpi", "mpi4py, and an MPI library"),
}

_process = os.getpid()  # JAX does not work in a forked one
_named: dict[str, Engine] = {}
_lock = threading.Lock()


def engine_of(spread: ExecutorOptions) -> Engine:
    """The engine of a callback's executor; one of a name is made once.

    Raises:
        ModuleNotFoundError: what the name stands for is not installed.
        ExecutorError: nobody listens at an address, or there is no client to be used.
    """
    __tracebackhide__ = True
    executor = spread.executor
    if not isinstance(executor, str):
        make = _OBJECTS.get(library_of(executor) or "", Engine)
        engine = make(executor, executor)
        _finish_before(type(engine.executor))
        return engine
    kind, _, after = executor.partition(":")
    if kind not in _NAMES:  # an address
        kind, after = "dask", executor
    if executor == "dask":  # whatever is the client now
        return _dask(executor, "")
    with _lock:
        engine = _named.get(executor)
        if engine is None or engine.gone():
            engine = _named[executor] = _NAMES[kind](executor, after)
            _finish_first()
    return engine


@functools.cache
def _finish_before(kind: type) -> None:
    _finish_first()


def needed(module: str) -> Any:
    """The module of an optional library.

    Raises:
        ModuleNotFoundError: it is not installed; says what to type.
    """
    __tracebackhide__ = True
    try:
        return importlib.import_module(module)
    except ImportError as error:
        extra, what = _NEEDS[module]
        raise ModuleNotFoundError(
            f"executor={extra!r} needs {what}, which cannot be imported ({error}). Install it: "
            f"pip install 'jupyter_jaxcb[{extra}]'; executor='threads' needs nothing."
        ) from error


def _threads(name: str, after: str) -> Engine:
    make = functools.partial(
        concurrent.futures.ThreadPoolExecutor, int(after or cores()), "jaxcb-threads"
    )
    return Engine(make(), name, make=make)


def _processes(name: str, after: str) -> Engine:
    loky = needed("loky")
    needed("cloudpickle")

    def make() -> Any:
        pool = loky.ProcessPoolExecutor(
            int(after or cores()),
            timeout=_IDLE_SECONDS,
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),  # the stop button is for who waits
        )
        pool.submit(int)  # it starts with its first work, which at the end of Python it cannot
        _finish_first()
        return pool

    return Engine(make(), name, make=make)


def _mpi(name: str, after: str) -> Engine:
    return named_mpi(needed("mpi4py.futures").MPIPoolExecutor, name, after)


def _dask(name: str, after: str) -> Engine:
    distributed = needed("distributed")
    if not after:
        return _dask_client(_or_say(distributed.get_client, name, "distributed.Client()"), name)
    try:
        client = distributed.Client(after, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ExecutorError(
            f"executor={name!r} cannot be reached: nobody listens at {after} ({error}). Start a "
            "scheduler there (dask scheduler), or pass a distributed.Client that is connected."
        ) from error
    return _dask_client(client, name)


def _dask_client(client: Any, named: Any) -> Engine:
    address = getattr(client.scheduler, "address", "an unknown address")

    def gone() -> str:
        if client.status == "running":
            return ""
        return f"the scheduler at {address} is lost (client {client.status})"

    return Engine(
        client.get_executor(pure=False),
        named,
        workers=lambda: sum(client.nthreads().values()),
        target_ns=_REMOTE_NS,
        gone=gone,
    )


def _ipyparallel(name: str, after: str) -> Engine:
    ipyparallel = needed("ipyparallel")
    make: Callable[..., Any] = functools.partial(ipyparallel.Client, timeout=CONNECT_SECONDS)
    if after:
        make = functools.partial(make, profile=after)
    start = f"ipcluster start{f' --profile={after}' if after else ''}"
    return _ipyparallel_view(_or_say(make, name, start), name)


def _ipyparallel_view(view: Any, named: Any) -> Engine:
    client = getattr(view, "client", view)
    if not hasattr(view, "targets") or hasattr(view, "scatter"):  # a client, or a direct view
        targets = getattr(view, "targets", None)
        try:
            view = client.load_balanced_view(targets)
        except Exception as error:
            raise ExecutorError(
                f"{client!r} has no engine to run anything ({error}). Start some: ipcluster "
                "engines."
            ) from error
    return Engine(
        view.executor, named, workers=lambda: len(view.targets or client.ids), target_ns=_REMOTE_NS
    )


def _or_say(make: Callable[[], Any], name: str, start: str) -> Any:
    try:
        return make()
    except Exception as error:  # of a class of the library's own
        raise ExecutorError(
            f"executor={name!r} found nothing to connect to ({type(error).__name__}: {error}). "
            f"Start it first: {start}; or pass a client."
        ) from error


_NAMES: dict[str, Callable[[str, str], Engine]] = {
    "threads": _threads,
    "processes": _processes,
    "dask": _dask,
    "ipyparallel": _ipyparallel,
    "mpi": _mpi,
}
_OBJECTS: dict[str, Callable[..., Engine]] = {
    "dask": _dask_client,
    "ipyparallel": _ipyparallel_view,
    "mpi": mpi_engine,
}
# A forked process has none of its parent's threads and processes.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_named.clear)


def _finish_first() -> None:
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
