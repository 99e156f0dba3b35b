"""Meshes, caches, backends, the profiler, processes and tracebacks of JAX.

These exist once in a process or a thread. Every piece has a fallback.

The key-value store of `jax.distributed` belongs to JAX's coordination service, which every
distributed run has on every backend.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import jax

from ._private import optional_module

_config = optional_module("jax._src.config")
_mesh = optional_module("jax._src.mesh")
_profiler = optional_module("jax._src.profiler")
_sharding_impls = optional_module("jax._src.sharding_impls")
_util = optional_module("jax._src.util")
_xla_bridge = optional_module("jax._src.xla_bridge")
_Jaxpr = Annotated[Any, "jax._src.core.ClosedJaxpr"]  # until JAX 0.10
_KeyDtype = Annotated[Any, "jax._src.random.prng.KeyTy"]
_own_caches = itertools.count(1_000_000)


class _FreshCaches(threading.local):
    """Whether this thread is inside `fresh_caches`."""

    active = False


_fresh_caches = _FreshCaches()


@contextlib.contextmanager
def without_mesh() -> Iterator[None]:
    """Hide the meshes that the surrounding code has set.

    If a JAX lacks one of the pieces, JAX code in an eager host function sees those meshes.
    """
    use_concrete = getattr(_sharding_impls, "_internal_use_concrete_mesh", None)
    concrete = getattr(_mesh, "empty_concrete_mesh", None)
    use_abstract = getattr(_mesh, "use_abstract_mesh", None)
    abstract = getattr(_mesh, "empty_abstract_mesh", None)
    environment = getattr(getattr(_mesh, "thread_resources", None), "env", None)
    physical = getattr(environment, "physical_mesh", None)  # of `with mesh:`
    empty = getattr(getattr(_mesh, "EMPTY_ENV", None), "physical_mesh", None)
    with contextlib.ExitStack() as around:
        if use_concrete is not None and concrete is not None:
            around.enter_context(use_concrete(concrete))
        if use_abstract is not None and abstract is not None:
            around.enter_context(use_abstract(abstract))
        if physical is not None and empty is not None and not physical.empty:
            around.enter_context(empty)
        yield


def held_weakly(kind: type) -> type:
    """Make JAX's caches hold parameters of the class `kind` weakly; a class decorator.

    JAX does so for functions, and for jaxprs through this table. Otherwise the cache of abstract
    evaluation keeps every traced host function, and everything it refers to, alive until
    `jax.clear_caches`.
    """
    kinds = getattr(_util, "weakref_cache_key_types", None)
    if kinds is not None:
        kinds.add(kind)
    return kind


@contextlib.contextmanager
def fresh_caches() -> Iterator[None]:
    """Trace and lower everything inside the block again, without using JAX's caches.

    Later calls do not find what was traced here either. `jax.make_user_context` would do the same,
    but creating one makes JAX recompile every function once. So this sets a number that is part of
    every cache key and otherwise only matters to profile-guided optimization. If JAX lacks it,
    explain may miss what JAX has traced before.
    """
    state = getattr(_config, "pgle_profiling_runs", None)
    before, _fresh_caches.active = _fresh_caches.active, True
    try:
        with contextlib.nullcontext() if state is None else state(next(_own_caches)):
            yield
    finally:
        _fresh_caches.active = before


def uncached_copy(jaxpr: _Jaxpr) -> Any:
    """Return `jaxpr`, or inside `fresh_caches` a copy, so that its executable can be freed.

    JAX keeps the original jaxpr, and the executable compiled from it, as long as the function. It
    also does if its jaxprs cannot be copied.
    """
    inner: Any = getattr(jaxpr, "jaxpr", None)
    copies = _fresh_caches.active and hasattr(jaxpr, "replace") and hasattr(inner, "replace")
    return jaxpr.replace(jaxpr=inner.replace()) if copies else jaxpr


def backend_name() -> str:
    """Return the default backend, such as ``cpu``; ``not started`` before JAX is used.

    `jax.default_backend` would start the backend, and then it is too late for some options and for
    ``jax.distributed.initialize``. It does if this JAX does not say whether one has started.
    """
    started = getattr(_xla_bridge, "backends_are_initialized", lambda: True)
    return jax.default_backend() if started() else "not started"


def backends_exist() -> bool:
    """Return whether JAX's backends are initialized, without initializing them.

    If a JAX lacks the pieces, this is always true: a profile then initializes the backends, and the
    program cannot choose its devices any more. JAX's lock is not taken, because the thread that
    initializes the backends holds it for long.
    """
    backends = getattr(_xla_bridge, "_backends", None)
    lock = getattr(_xla_bridge, "_backend_lock", None)
    return backends is None or (bool(backends) and not (lock is not None and lock.locked()))


def host_function_can_block() -> bool:
    """Return whether XLA's CPU client can deadlock with a host function that uses JAX.

    It can until JAX 0.11.2 with asynchronous dispatch, but not in 0.12.0.
    """
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    return jax.__version_info__ < (0, 12) and bool(asynchronous)


def key_implementation(dtype: _KeyDtype) -> str | None:
    """Return the name of the PRNG implementation of a key `dtype`; None for other dtypes.

    Keys have a public API for this, but their dtype has none. If the attribute is gone, host
    functions with ``arrays="jax"`` get the key data instead of keys.
    """
    return getattr(getattr(dtype, "_impl", None), "name", None)


class ProfilerSession:
    """One run of JAX's profiler, from its creation to `stop`. It initializes JAX's backends.

    Since JAX 0.12 this is public API. Before, the data is taken from JAX's session; if a JAX lacks
    that, JAX writes it to a temporary folder, which takes twice as long, and it is read from there.

    Raises:
        RuntimeError: the profiler is running already.
    """

    def __init__(self) -> None:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # events of each Python call would slow the program down
        options.enable_hlo_proto = False  # of every program, also of those that do not run
        self._folder: pathlib.Path | None = None  # JAX creates it if it writes there
        self._session: Any = None
        public = getattr(jax.profiler, "ProfileSession", None)
        if public is not None:
            self._session = public(profiler_options=options).start()
            return
        self._folder = pathlib.Path(tempfile.gettempdir(), f"jaxcb-profile-{uuid.uuid4().hex}")
        jax.profiler.start_trace(self._folder, profiler_options=options)
        self._session = getattr(_state(), "profile_session", None)  # until JAX 0.11

    @property
    def is_running(self) -> bool:
        """Whether no other code has stopped this run, as `jax.profiler.stop_trace` does."""
        if self._folder is None:
            return self._session.is_running
        return self._session is None or _state().profile_session is self._session

    def stop(self) -> Any:
        """Stop the profiler, unless it was stopped; return its `jax.profiler.ProfileData`."""
        if self._folder is None:
            return self._session.stop() if self.is_running else self._session.profile_data
        try:
            return self._data_of_session(self._folder)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _data_of_session(self, folder: pathlib.Path) -> Any:
        stop = getattr(self._session, "stop_and_get_profile_data", None)
        if stop is None:
            if self.is_running:
                jax.profiler.stop_trace()
        else:
            state = _state()
            with state.lock:
                if self.is_running:
                    try:
                        return stop()
                    finally:
                        state.reset()
        (file,) = folder.rglob("*.xplane.pb")
        return jax.profiler.ProfileData.from_file(str(file))


def _state() -> Any:
    return getattr(_profiler, "_profile_state", None)


_OURS = ("jax_compat", "stack", "capabilities", "register", "diagnostics", "host_callback")


def _package() -> str:
    file = str(sys.modules[__name__.partition(".")[0]].__file__)
    return os.path.dirname(os.path.abspath(file))


def leave_out_of_tracebacks() -> None:
    """Make JAX treat the frames of this package's stack as its own.

    Otherwise the source locations in JAX's programs and errors would point into this package. They
    do if JAX lacks these functions.
    """
    for name in ("source_info_util", "traceback_util"):
        register: Any = getattr(optional_module(f"jax._src.{name}"), "register_exclusion", None)
        if register is not None:
            for part in _OURS:
                register(os.path.join(_package(), part))


class Store:
    """A store of bytes by name, written once by any process and readable by all.

    Args:
        client: the client of the coordination service.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, name: str, data: bytes) -> None:
        """Write `data`, at most a few megabytes."""
        self._client.key_value_set_bytes(name, data)

    def get(self, name: str, seconds: float) -> bytes | None:
        """Return the data under `name`, waiting up to `seconds` for it; None on timeout."""
        try:
            return self._client.blocking_key_value_get_bytes(name, max(1, int(seconds * 1000)))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise

    def under(self, folder: str) -> dict[str, bytes]:
        """Return everything whose name begins with ``folder/``."""
        return dict(self._client.key_value_dir_get_bytes(f"{folder}/"))

    def delete(self, folder: str) -> None:
        """Delete everything whose name begins with ``folder/``."""
        self._client.key_value_delete(f"{folder}/")


def shared_store() -> Store | None:
    """Return the store of this run; None if there is none, or this JAX hides it.

    `jax._src.distributed.global_state.client` is private; checked in JAX 0.10.2 and 0.12.0.
    """
    try:
        from jax._src.distributed import global_state

        client = global_state.client
    except (ImportError, AttributeError):
        return None
    needed = (
        "key_value_set_bytes",
        "blocking_key_value_get_bytes",
        "key_value_dir_get_bytes",
        "key_value_delete",
    )
    return Store(client) if all(hasattr(client, name) for name in needed) else None


def process_number() -> tuple[int, int]:
    """Return this process's number and the number of processes: ``(0, 1)`` if not distributed."""
    if not jax.distributed.is_initialized():
        return 0, 1
    # Not the public jax.process_index(): it waits until all processes have started their backends.
    try:
        from jax._src.distributed import global_state

        return global_state.process_id, global_state.num_processes
    except (ImportError, AttributeError):
        return jax.process_index(), jax.process_count()


def start_backends() -> None:
    """Start the backends of this process in the background.

    The first computation of any process waits until all processes have started their backends. A
    process that computes nothing would block it forever.
    """

    def start() -> None:
        with contextlib.suppress(Exception):  # the computation that needs them raises it
            jax.local_devices()

    threading.Thread(target=start, name="jaxcb-backends", daemon=True).start()


def from_all(data: Any) -> Any:
    """Return the array `data` of every process, stacked; all processes must call this together."""
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(data)
