"""Make the engine for an executor's name or object.

A library is imported only when an executor needs it.
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

from ...stack.interrupt import InFlight, finish_before_executors_end, interrupt_at_exit
from ._engine import Engine, ExecutorError, cores
from ._mpi import mpi_engine, named_mpi
from ._options import library_of

CONNECT_SECONDS = 10.0  # timeout for connecting to a scheduler
_REMOTE_NS = 20_000_000  # least duration of the batch elements in one chunk over a network
_IDLE_SECONDS = 300  # an idle worker process ends after this
_NEEDS = {  # module: the executor that needs it, what it needs, and the packages to install
    "loky": ("processes", "loky and cloudpickle", "loky cloudpickle"),
    "cloudpickle": ("processes", "cloudpickle", "cloudpickle"),
    "distributed": ("dask", "dask's distributed", "distributed cloudpickle"),
    "ipyparallel": ("ipyparallel", "ipyparallel", "ipyparallel cloudpickle"),
    "mpi4py.futures": ("mpi", "mpi4py, and an MPI library", "mpi4py cloudpickle"),
}

_process = os.getpid()  # JAX does not work in a forked child
_named: dict[str, Engine] = {}
_lock = threading.Lock()


def engine_of(executor: Any) -> Engine:
    """Return the engine of a callback's executor; each named engine is made once.

    Raises:
        ModuleNotFoundError: if the library of a named executor is not installed.
        ExecutorError: if no scheduler listens at an address, or there is no client to use.
    """
    __tracebackhide__ = True
    if not isinstance(executor, str):
        make = _OBJECTS.get(library_of(executor) or "", Engine)
        engine = make(executor, executor)
        _finish_before(type(engine.executor))
        return engine
    kind, _, after = executor.partition(":")
    if kind not in _NAMES:  # an address
        kind, after = "dask", executor
    if executor == "dask":  # the current default client
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


def needed(module: str, option: str = "") -> Any:
    """Import the module of an optional library.

    Args:
        module: its name.
        option: the option that needs it, as the user typed it; empty: an executor's name.

    Raises:
        ModuleNotFoundError: if it is not installed; the message has the install command.
    """
    __tracebackhide__ = True
    try:
        return importlib.import_module(module)
    except ImportError as error:
        kind, what, packages = _NEEDS[module]
        raise ModuleNotFoundError(
            f"{option or f'executor={kind!r}'} needs {what}, but the import failed ({error}). Run "
            f"`pip install {packages}`, or use executor='threads'."
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
            initargs=(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C is handled by the waiting process
        )
        pool.submit(int)  # starts the workers now: they cannot start while Python shuts down
        _finish_first()
        return pool

    return Engine(make(), name, make=make)


def _mpi(name: str, after: str) -> Engine:
    return named_mpi(needed("mpi4py.futures").MPIPoolExecutor, name, after)


def _dask(name: str, after: str) -> Engine:
    distributed = needed("distributed")
    if not after:
        return _dask_client(_connect(distributed.get_client, name, "distributed.Client()"), name)
    try:
        client = distributed.Client(after, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ExecutorError(
            f"executor={name!r} cannot be reached: no scheduler listens at {after} ({error}). "
            "Start one there (dask scheduler), or pass a connected distributed.Client."
        ) from error
    return _dask_client(client, name)


def _dask_client(client: Any, named: Any) -> Engine:
    address = getattr(client.scheduler, "address", "an unknown address")

    def gone() -> str:
        if client.status == "running":
            return ""
        return f"lost the connection to the scheduler at {address} (client {client.status})"

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
    return _ipyparallel_view(_connect(make, name, start), name)


def _ipyparallel_view(view: Any, named: Any) -> Engine:
    client = getattr(view, "client", view)
    if not hasattr(view, "targets") or hasattr(view, "scatter"):  # a client, or a direct view
        targets = getattr(view, "targets", None)
        try:
            view = client.load_balanced_view(targets)
        except Exception as error:
            raise ExecutorError(
                f"{client!r} has no engines ({error}). Start some with ipcluster engines."
            ) from error
    return Engine(
        view.executor, named, workers=lambda: len(view.targets or client.ids), target_ns=_REMOTE_NS
    )


def _connect(make: Callable[[], Any], name: str, start: str) -> Any:
    try:
        return make()
    except Exception as error:  # each library has its own error classes
        raise ExecutorError(
            f"executor={name!r} has nothing to connect to ({type(error).__name__}: {error}). "
            f"Start it first with {start}, or pass a client."
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
# A forked child has none of its parent's threads and processes.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_named.clear)


def _finish_first() -> None:
    """Finish the programs in flight, and what they left, before the executors shut down at exit.

    Executors shut down early in Python's exit, but JAX waits for its programs only at the end.
    The function registered last is called first.
    """
    with contextlib.suppress(AttributeError, RuntimeError):  # another Python, or shutting down
        threading._register_atexit(_finish)  # type: ignore[attr-defined]


def _finish() -> None:
    if os.getpid() == _process:
        interrupt_at_exit()
        InFlight().wait(math.inf)
        for finish in finish_before_executors_end:
            finish()
