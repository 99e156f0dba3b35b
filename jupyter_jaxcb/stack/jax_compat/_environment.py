"""What is around a call: meshes, caches, backends, tracebacks. Each piece has a fallback."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax

try:
    from jax._src import config as _config
    from jax._src import mesh as _mesh
    from jax._src import sharding_impls as _sharding_impls
    from jax._src import util as _util
    from jax._src import xla_bridge as _xla_bridge
except ImportError:
    _config: Any = None
    _mesh: Any = None
    _sharding_impls: Any = None
    _util: Any = None
    _xla_bridge: Any = None

_own_caches = itertools.count(1_000_000)


class _Asking(threading.local):
    """Whether this thread is inside of `fresh_caches`."""

    now = False


_asking = _Asking()


@contextlib.contextmanager
def without_mesh() -> Iterator[None]:
    """Hides the meshes that the surrounding code has set; does nothing in a JAX without these."""
    hide_concrete = getattr(_sharding_impls, "_internal_use_concrete_mesh", None)
    hide_abstract = getattr(_mesh, "use_abstract_mesh", None)
    with contextlib.ExitStack() as around:
        if hide_concrete is not None:
            around.enter_context(hide_concrete(_mesh.empty_concrete_mesh))
        if hide_abstract is not None:
            around.enter_context(hide_abstract(_mesh.empty_abstract_mesh))
        resources = getattr(getattr(_mesh, "thread_resources", None), "env", None)
        if resources is not None and not resources.physical_mesh.empty:  # `with mesh:`
            around.enter_context(_mesh.EMPTY_ENV.physical_mesh)
        yield


def held_weakly(kind: type) -> type:
    """Has JAX's caches hold parameters of the class `kind` weakly; works as a decorator.

    JAX does so with functions, and with jaxprs by this table. Without it the cache of abstract
    evaluation keeps each host function that was traced, and all that it refers to, until
    `jax.clear_caches`.
    """
    kinds = getattr(_util, "weakref_cache_key_types", None)
    if kinds is not None:
        kinds.add(kind)
    return kind


@contextlib.contextmanager
def fresh_caches() -> Iterator[None]:
    """Everything this thread traces or lowers inside is traced and lowered anew.

    What is traced here is not found by later calls either. `jax.make_user_context` would do the
    same, but making one costs every function that is compiled already another compilation. So this
    takes a number of JAX's that is part of every cache's key, and means something to profile-guided
    optimisation alone. Without it explain may miss what JAX has traced before.
    """
    state = getattr(_config, "pgle_profiling_runs", None)
    before, _asking.now = _asking.now, True
    try:
        with contextlib.nullcontext() if state is None else state(next(_own_caches)):
            yield
    finally:
        _asking.now = before


def uncached_copy(jaxpr: Any) -> Any:
    """`jaxpr`, or a copy inside of `fresh_caches`: what is made of that goes with it.

    JAX keeps the jaxpr as long as the function that was traced, and with it the executable.
    """
    inner: Any = getattr(jaxpr, "jaxpr", None)
    copies = _asking.now and hasattr(jaxpr, "replace") and hasattr(inner, "replace")
    return jaxpr.replace(jaxpr=inner.replace()) if copies else jaxpr


def backend_name() -> str:
    """The default backend, ``cpu``; ``not started`` before JAX is used.

    Asking `jax.default_backend` would start it: too late then for options and
    ``jax.distributed.initialize``.
    """
    started = getattr(_xla_bridge, "backends_are_initialized", lambda: True)
    return jax.default_backend() if started() else "not started"


def host_function_can_block() -> bool:
    """Whether XLA's CPU client can wait for ever for a host function that uses JAX.

    Seen in JAX 0.8.0 to 0.11.2, with asynchronous dispatch; not in 0.12.0.
    """
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    return jax.__version_info__ < (0, 12) and bool(asynchronous)


def key_implementation(dtype: Any) -> str | None:
    """The name of the implementation of PRNG keys of `dtype`; None for what is no key.

    A key has public ways to ask this; its dtype has none. Where the attribute is gone, host
    functions that ask for JAX arrays get the key's data.
    """
    return getattr(getattr(dtype, "_impl", None), "name", None)


_OURS = ("stack", "diagnostics", "host_callback")


def _package() -> str:
    file = str(sys.modules[__name__.partition(".")[0]].__file__)
    return os.path.dirname(os.path.abspath(file))


def leave_out_of_tracebacks() -> None:
    """Makes JAX take the frames of our stack for its own, as the ones around them are.

    Else the places that JAX notes in programs, and shows in errors, would be in there. Without
    these functions they are.
    """
    for name in ("source_info_util", "traceback_util"):
        with contextlib.suppress(ImportError, AttributeError):
            register = importlib.import_module(f"jax._src.{name}").register_exclusion
            for part in _OURS:
                register(os.path.join(_package(), part))
