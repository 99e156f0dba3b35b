"""Executors by name, and what is known of each kind.

A library is imported only when an executor needs it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import importlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_jaxcb_worker import Chunk, Task, start_worker

from ...stack.errors import describe
from ...stack.interrupt import InFlight, finish_before_executors_end, interrupt_at_exit
from ...stack.options import value_word
from ._options import is_shut_down, kind_of, leaves_process, library_of

CONNECT_SECONDS = 10.0  # timeout for connecting to a scheduler, and for starting threads
_IDLE_SECONDS = 300  # an idle worker process ends after this
_LOST = {"BrokenExecutor", "KilledWorker", "EngineError"}  # classes that report a lost worker
_NEEDS = {  # module: the executor that needs it, what it needs, and the packages to install
    "loky": ("processes", "loky and cloudpickle", "loky cloudpickle"),
    "cloudpickle": ("processes", "cloudpickle", "cloudpickle"),
    "distributed": ("dask", "dask's distributed", "distributed cloudpickle"),
    "ipyparallel": ("ipyparallel", "ipyparallel", "ipyparallel cloudpickle"),
}

_own_pid = os.getpid()  # JAX does not work in a forked child
_named: dict[str, Pool] = {}
_lock = threading.Lock()


class ExecutorError(RuntimeError):
    """An executor rejects work or cannot be reached; the message says what to do.

    To make the calls in this process if the executor cannot be used:

    >>> import numpy as np, jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> def double(x):
    ...     return 2 * x
    >>> executor = "threads:2"
    >>> f = jaxcb.pure(double, result="x", executor=executor)
    >>> try:
    ...     y = jax.vmap(f)(jnp.arange(3.0))
    ... except jaxcb.ExecutorError:
    ...     y = jax.vmap(jaxcb.pure(double, result="x"))(jnp.arange(3.0))
    >>> y
    Array([0., 2., 4.], dtype=float32)
    """


class WorkerLostError(RuntimeError):
    """A worker died while it was running a chunk of batch elements, which the message names.

    With ``chunksize=1`` that is a single one:

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> f = jaxcb.pure(np.sin, result="x", executor="processes:2", chunksize=1)
    """


class Pool:
    """An executor, and what calls in it need to know.

    Args:
        executor: an object with the interface of `concurrent.futures.Executor`.
        named: the executor as the user passed it, for messages.
        workers: returns the number of workers; None to read it off the executor.
        make: makes the executor again; None if it is not ours to end.
        client: the client of dask that is connected to the workers, if one is.

    Attributes:
        travels: whether batch elements leave the process; None if unknown.
        is_far: whether it takes time until a worker gets its next chunk.
    """

    def __init__(
        self,
        executor: Any,
        named: Any,
        workers: Callable[[], int] | None = None,
        make: Callable[[], Any] | None = None,
        client: Any = None,
    ) -> None:
        self.executor, self.make, self._workers, self._client = executor, make, workers, client
        self.word = f"executor={value_word('executor', named)}"
        self.travels = leaves_process(named)
        self.is_far = make is None and self.travels is not False

    @property
    def workers(self) -> int:
        """The number of workers, at least one."""
        if self._workers is not None:
            return max(self._workers(), 1)
        known = getattr(self.executor, "_max_workers", None)
        return known if isinstance(known, int) and known > 0 else cores()

    def cancel(self, future: concurrent.futures.Future) -> None:
        """Cancel work that has not started.

        Never in a process pool that breaks: it fails its futures one by one, and in Python 3.11 a
        cancelled one stops that halfway, so that other callers wait forever.
        """
        if not is_broken(self.executor):
            future.cancel()

    def end(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Replace the workers that run chunks, if the executor is ours.

        Processes are killed; returns what they ran. Threads cannot be: they end when their work is
        done, because nobody keeps their executor.
        """
        if isinstance(self.executor, Processes):
            return self.executor.kill(chunks)
        if self.make is not None and chunks:
            self.executor = self.make()
        return []

    @property
    def is_connected(self) -> bool:
        """Whether the connection to the workers is there, if one is needed."""
        return self._client is None or self._client.status == "running"

    def check_connection(self) -> None:
        """Raise ExecutorError if the connection to the workers is lost."""
        if not self.is_connected:
            address = getattr(self._client.scheduler, "address", "an unknown address")
            raise ExecutorError(
                f"{self.word}: lost the connection to the scheduler at {address} (client "
                f"{self._client.status}). Restart it and connect again."
            )

    def error(self, error: BaseException) -> ExecutorError:
        """Return the error to raise when the executor rejects work."""
        text = describe(error)
        if has_lost_worker(error):
            what = f"is broken ({text})"
        elif is_shut_down(self.executor) or "after shutdown" in text:
            what = "is shut down"
        else:
            what = f"rejected the work ({text})"
        return ExecutorError(
            f"{self.word} {what}. Register the callback with a new executor, and keep that open "
            "while the callback is in use."
        )


def is_broken(executor: Any) -> bool:
    """Return whether a worker of a pool of processes died, and the pool says so."""
    flags = getattr(executor, "_flags", None)  # loky's
    return bool(getattr(flags, "broken", None) or getattr(executor, "_broken", False))


def has_lost_worker(error: BaseException | None) -> bool:
    """Return whether `error`, raised by a future, means that a worker died."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(_LOST & {*names, getattr(error, "ename", "")})  # ipyparallel wraps it


class Processes(concurrent.futures.ThreadPoolExecutor):
    """Threads that pass each chunk to a process of their own: if it dies, its chunk is known.

    Args:
        count: the number of processes.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, "jaxcb-processes")
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[tuple[Any, concurrent.futures.Future]] = queue.SimpleQueue()
        for _ in range(count):  # at once: no process can be started while Python shuts down
            self._idle.put(_process())
        all_run = threading.Barrier(count, timeout=CONNECT_SECONDS)
        for _ in range(count):  # and no thread
            super().submit(all_run.wait)

    def submit(self, run: Any, task: Task, chunk: Chunk) -> Any:  # type: ignore[override]
        return super().submit(self._run_in_process, run, task, chunk)

    def _run_in_process(self, run: Any, task: Task, chunk: Chunk) -> Any:
        pool, started = self._idle.get()
        try:
            if is_broken(pool) or is_shut_down(pool):
                pool, started = _process()
            started.result()
            with self._lock:  # `kill` must not meet another chunk
                if not chunk.more:
                    raise concurrent.futures.CancelledError
                chunk.began, RUNNING[chunk] = time.monotonic(), pool
            return pool.submit(run, task, chunk).result()
        finally:
            with self._lock:
                RUNNING.pop(chunk, None)
            self._idle.put((pool, started))

    def kill(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Kill the processes that run `chunks`; return those that they run."""
        with self._lock:
            running = [chunk for chunk in chunks if chunk in RUNNING]
            for chunk in running:
                RUNNING[chunk].shutdown(wait=False, kill_workers=True)
            return running


RUNNING: dict[Chunk, Any] = {}  # the pools of `Processes` that run chunks now


def _process() -> tuple[Any, concurrent.futures.Future]:
    """Start a pool of one process; return it with a future that is done when the process runs."""
    pool = needed("loky").ProcessPoolExecutor(1, timeout=_IDLE_SECONDS, initializer=start_worker)
    return pool, pool.submit(int)


def cores() -> int:
    """Return the number of CPU cores this process may use."""
    can_tell = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    return len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1


def needed(module: str, option: str = "") -> Any:
    """Import an optional library, which `option` needs; empty: that is the name of an executor.

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


def pool_of(executor: Any) -> Pool:
    """Return the pool of a callback's executor; each named one is made once.

    Raises:
        ModuleNotFoundError: if the library of a named executor is not installed.
        ExecutorError: if no scheduler listens at an address, or there is no client to use.
    """
    __tracebackhide__ = True
    if not isinstance(executor, str):
        pool = _LIBRARIES.get(library_of(executor), Pool)(executor, executor)
        _finish_before(type(pool.executor))
        return pool
    kind, after = kind_of(executor)
    if executor == "dask":  # the current default client
        return _dask(executor, "")
    with _lock:
        pool = _named.get(executor)
        if pool is None or not pool.is_connected:
            pool = _named[executor] = _NAMES[kind](executor, after)
            _finish_before(kind)
    return pool


def _threads(name: str, after: str) -> Pool:
    count, prefix = int(after or cores()), "jaxcb-threads"
    make = functools.partial(concurrent.futures.ThreadPoolExecutor, count, prefix)
    return Pool(make(), name, make=make)


def _processes(name: str, after: str) -> Pool:
    needed("loky")
    needed("cloudpickle")
    make = functools.partial(Processes, int(after or cores()))
    return Pool(make(), name, make=make)


def _dask(name: str, after: str) -> Pool:
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


def _dask_client(executor: Any, named: Any) -> Pool:
    """Make the pool of a client, or of the executor that one has made."""
    client = getattr(executor, "_client", executor)
    if client is executor:
        executor = client.get_executor(pure=False)  # else equal calls would run once
    return Pool(executor, named, lambda: sum(client.nthreads().values()), client=client)


def _ipyparallel(name: str, after: str) -> Pool:
    profile = {"profile": after} if after else {}
    make = functools.partial(needed("ipyparallel").Client, timeout=CONNECT_SECONDS, **profile)
    start = f"ipcluster start{f' --profile={after}' if after else ''}"
    return _ipyparallel_view(_connect(make, name, start), name)


def _ipyparallel_view(view: Any, named: Any) -> Pool:
    """Make the pool of a client, or of a view."""
    client = getattr(view, "client", view)
    if not hasattr(view, "targets") or hasattr(view, "scatter"):  # a client, or a direct view
        view = client.load_balanced_view(getattr(view, "targets", None))
    return Pool(view.executor, named, lambda: len(view.targets or client.ids))


def _connect(make: Callable[[], Any], name: str, start: str) -> Any:
    try:
        return make()
    except Exception as error:  # each library has its own error classes
        raise ExecutorError(
            f"executor={name!r} has nothing to connect to ({type(error).__name__}: {error}). "
            f"Start it first with {start}, or pass a client."
        ) from error


_NAMES: dict[str, Any] = {
    "threads": _threads, "processes": _processes, "dask": _dask, "ipyparallel": _ipyparallel
}  # fmt: skip
_LIBRARIES = {"distributed": _dask_client, "ipyparallel": _ipyparallel_view}
# A forked child has none of its parent's threads and processes.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_named.clear)


@functools.cache
def _finish_before(kind: Any) -> None:
    """Finish the programs in flight, and what they left, before executors of a kind end at exit.

    Executors shut down early in Python's exit, but JAX waits for its programs only at the end.
    The function registered last is called first, and a library registers its own when its first
    executor is made.
    """
    with contextlib.suppress(AttributeError, RuntimeError):  # another Python, or shutting down
        threading._register_atexit(_finish)  # type: ignore[attr-defined]


def _finish() -> None:
    if os.getpid() == _own_pid:
        interrupt_at_exit()
        InFlight().wait(math.inf)
        for finish in finish_before_executors_end:
            finish()
