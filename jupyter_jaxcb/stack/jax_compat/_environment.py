"""Meshes, caches, backends and tracebacks of JAX. Every piece has a fallback."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import jax

from ._optional import optional_module

_config = optional_module("jax._src.config")
_mesh = optional_module("jax._src.mesh")
_sharding_impls = optional_module("jax._src.sharding_impls")
_util = optional_module("jax._src.util")
_xla_bridge = optional_module("jax._src.xla_bridge")
_Jaxpr = Annotated[Any, "jax._src.core.ClosedJaxpr"]  # until JAX 0.10
_KeyDtype = Annotated[Any, "jax._src.random.prng.KeyTy"]  # since JAX 0.9
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


def host_function_can_block() -> bool:
    """Return whether XLA's CPU client can deadlock with a host function that uses JAX.

    It can in JAX 0.8.0 to 0.11.2 with asynchronous dispatch, but not in 0.12.0.
    """
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    return jax.__version_info__ < (0, 12) and bool(asynchronous)


def key_implementation(dtype: _KeyDtype) -> str | None:
    """Return the name of the PRNG implementation of a key `dtype`; None for other dtypes.

    Keys have a public API for this, but their dtype has none. If the attribute is gone, host
    functions with ``arrays="jax"`` get the key data instead of keys.
    """
    return getattr(getattr(dtype, "_impl", None), "name", None)


_OURS = ("stack", "diagnostics", "host_callback")


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
