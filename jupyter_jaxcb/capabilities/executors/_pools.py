"""Executors by name, and what is known of each kind.

A library is imported only when an executor needs it.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import importlib
import math
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_jaxcb_worker import start_worker

from ...stack.errors import describe
from ...stack.interrupt import InFlight, finish_before_executors_end, interrupt_at_exit
from ...stack.options import value_word
from ._options import is_shut_down, leaves_process, library_of

CONNECT_SECONDS = 10.0  # timeout for connecting to a scheduler
_IDLE_SECONDS = 300  # an idle worker process ends after this
_LOST = {"BrokenExecutor", "KilledWorker", "EngineError"}  # classes that report a lost worker
_NEEDS = {  # module: the executor that needs it, what it needs, and the packages to install
    "loky": ("processes", "loky and cloudpickle", "loky cloudpickle"),
    "cloudpickle": ("processes", "cloudpickle", "cloudpickle"),
    "distributed": ("dask", "dask's distributed", "distributed cloudpickle"),
    "ipyparallel": ("ipyparallel", "ipyparallel", "ipyparallel cloudpickle"),
}

_process = os.getpid()  # JAX does not work in a forked child
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
        gone: returns what is wrong with the connection, or an empty string.

    Attributes:
        travels: whether batch elements leave the process; None if unknown.
    """

    def __init__(
        self,
        executor: Any,
        named: Any,
        workers: Callable[[], int] | None = None,
        make: Callable[[], Any] | None = None,
        gone: Callable[[], str] = str,
    ) -> None:
        self.executor, self.make, self._workers, self._gone = executor, make, workers, gone
        self.word = f"executor={value_word('executor', named)}"
        self.travels = leaves_process(named)

    @property
    def workers(self) -> int:
        """The number of workers, at least one."""
        if self._workers is not None:
            try:
                return max(self._workers(), 1)
            except Exception as error:
                raise self.error(error) from error
        known = getattr(self.executor, "_max_workers", None)
        return known if isinstance(known, int) and known > 0 else cores()

    def submit(self, *work: Any) -> concurrent.futures.Future:
        """Submit work.

        Raises:
            ExecutorError: if the executor rejects it.
        """
        self.check_connection()
        try:
            return self.executor.submit(*work)
        except Exception as error:
            raise self.error(error) from error

    def cancel(self, future: concurrent.futures.Future) -> bool:
        """Cancel work that has not started; return whether it was cancelled.

        Never in a process pool that breaks: it fails its futures one by one, and in Python 3.11 a
        cancelled one stops that halfway, so that other callers wait forever.
        """
        return not is_broken(self.executor) and future.cancel()

    def replace_workers(self, futures: Sequence[concurrent.futures.Future]) -> None:
        """Kill the workers that run `futures`, and start others, if the executor is ours.

        Threads cannot be killed: they go on, and a new executor takes the place of theirs.
        """
        if isinstance(self.executor, Processes):
            for future in futures:
                self.executor.kill(future)
        elif self.make is not None and futures:
            self.executor.shutdown(wait=False)
            self.executor = self.make()

    def check_connection(self) -> None:
        """Raise ExecutorError if the connection to the workers is lost."""
        wrong = self._gone()
        if wrong:
            raise ExecutorError(f"{self.word}: {wrong}. Restart it and connect again.")

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


class Processes(concurrent.futures.Executor):
    """Worker processes, each in a pool of its own: if one dies, its work is known, and no more.

    Args:
        count: the number of processes.
    """

    def __init__(self, count: int) -> None:
        self._max_workers = count
        self._lock = threading.RLock()
        self._waiting: collections.deque[tuple[concurrent.futures.Future, Any]] = (
            collections.deque()
        )
        self._idle: list[Any] = []  # pools
        self._running: dict[concurrent.futures.Future, Any] = {}  # the pool of each future
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        """Start a process; at once, because none can be started while Python shuts down."""
        pool = needed("loky").ProcessPoolExecutor(
            1, timeout=_IDLE_SECONDS, initializer=start_worker
        )
        pool.submit(int).add_done_callback(functools.partial(self._started, pool))

    def _started(self, pool: Any, own: concurrent.futures.Future) -> None:
        error = own.exception()
        with self._lock:
            while error is not None and self._waiting:  # the next one might fail as well
                future, _ = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            self._idle.append(pool)
            self._next()

    def submit(self, *work: Any) -> concurrent.futures.Future:  # type: ignore[override]
        future: concurrent.futures.Future = concurrent.futures.Future()
        with self._lock:
            self._waiting.append((future, work))
            self._next()
        return future

    def _next(self) -> None:
        """Give the work that waits to the processes that are idle."""
        while self._idle and self._waiting:
            pool = self._idle.pop()
            if is_broken(pool) or is_shut_down(pool):  # the process died, or did not start
                self._start()
                continue
            future, work = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                self._idle.append(pool)
                continue
            self._running[future] = pool
            pool.submit(*work).add_done_callback(functools.partial(self._done, future))

    def _done(self, future: concurrent.futures.Future, own: concurrent.futures.Future) -> None:
        error, pool = own.exception(), self._running.pop(future)
        if error is None:
            future.set_result(own.result())
        else:
            future.set_exception(error)
        with self._lock:
            if error is not None and has_lost_worker(error):
                self._start()
            else:
                self._idle.append(pool)
                self._next()

    def pid_of(self, future: concurrent.futures.Future) -> int | None:
        """Return the process that runs `future`; None if it does not run, or is ending."""
        pool = self._running.get(future)
        return next(iter(getattr(pool, "_processes", None) or ()), None)

    def kill(self, future: concurrent.futures.Future) -> None:
        """Kill the process that runs `future`, if one does."""
        pid = self.pid_of(future)
        if pid is not None:
            with contextlib.suppress(OSError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def cores() -> int:
    """Return the number of CPU cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


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


def pool_of(executor: Any) -> Pool:
    """Return the pool of a callback's executor; each named one is made once.

    Raises:
        ModuleNotFoundError: if the library of a named executor is not installed.
        ExecutorError: if no scheduler listens at an address, or there is no client to use.
    """
    __tracebackhide__ = True
    if not isinstance(executor, str):
        pool = _LIBRARIES.get(library_of(executor) or "", Pool)(executor, executor)
        _finish_before(type(pool.executor))
        return pool
    kind, _, after = executor.partition(":")
    if kind not in _NAMES:  # an address
        kind, after = "dask", executor
    if executor == "dask":  # the current default client
        return _dask(executor, "")
    with _lock:
        pool = _named.get(executor)
        if pool is None or pool._gone():
            pool = _named[executor] = _NAMES[kind](executor, after)
            _finish_before(kind)
    return pool


def _threads(name: str, after: str) -> Pool:
    make = functools.partial(
        concurrent.futures.ThreadPoolExecutor, int(after or cores()), "jaxcb-threads"
    )
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

    def gone() -> str:
        if client.status == "running":
            return ""
        address = getattr(client.scheduler, "address", "an unknown address")
        return f"lost the connection to the scheduler at {address} (client {client.status})"

    return Pool(executor, named, lambda: sum(client.nthreads().values()), gone=gone)


def _ipyparallel(name: str, after: str) -> Pool:
    make = functools.partial(needed("ipyparallel").Client, timeout=CONNECT_SECONDS)
    if after:
        make = functools.partial(make, profile=after)
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


_NAMES: dict[str, Callable[[str, str], Pool]] = {
    "threads": _threads,
    "processes": _processes,
    "dask": _dask,
    "ipyparallel": _ipyparallel,
}
_LIBRARIES: dict[str, Callable[[Any, Any], Pool]] = {
    "dask": _dask_client,
    "ipyparallel": _ipyparallel_view,
}
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
    if os.getpid() == _process:
        interrupt_at_exit()
        InFlight().wait(math.inf)
        for finish in finish_before_executors_end:
            finish()
