"""JAX used inside a host function: found in its code and named before a call can block.

XLA's CPU client up to JAX 0.11 runs host functions on the threads that computations need, and lets
only so many computations be in flight. A host function that starts one more waits for those before
it, and they wait for the host function. Nothing can be seen of that from outside once it has begun,
and nothing that watches may stand on the path of every host call; so the code is looked at, once,
when a program that calls it is lowered.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
import weakref
from typing import Any

import jax
import jax.numpy as jnp

from ...recording import JaxUse, Note, NoteKind, Site
from .. import jax_compat
from ..core import HostFunction, is_cell
from ._references import loads

# Public modules of JAX whose functions compute, and what in them only asks or describes.
_COMPUTING = tuple(f"jax.{name}" for name in "numpy lax scipy nn random image ops".split())
_HARMLESS = frozenset(
    "array_repr broadcast_shapes can_cast dtype finfo get_printoptions iinfo iscomplexobj "
    "isdtype isscalar issubdtype ndim printoptions promote_types result_type set_printoptions "
    "shape size".split()
)
_TRANSFORMATIONS = (
    "device_put grad hessian jacfwd jacobian jacrev jit jvp linearize pmap value_and_grad vjp vmap"
)
_COMPILED = (type(jax.jit(len)), jax.custom_jvp, jax.custom_vjp)


class JaxInHostFunctionWarning(UserWarning):
    """A host function uses JAX, which can wait for ever on this version of it.

    The message names the callback, the use, and the way out. To silence it where it is known to be
    safe (one call at a time, say):

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.JaxInHostFunctionWarning)
    """


_uses: weakref.WeakKeyDictionary[HostFunction, tuple[int, JaxUse | None]]
_uses = weakref.WeakKeyDictionary()
_lowered: weakref.WeakKeyDictionary[HostFunction, tuple[Site, str]] = weakref.WeakKeyDictionary()
_warned: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


def jax_inside(host: HostFunction) -> JaxUse | None:
    """Where the code of `host` uses JAX first, as far as can be known without running it."""
    known = _uses.get(host)
    if known is None or known[0] != host.version:
        known = _uses[host] = (host.version, _first_use(host))
    return known[1]


def _first_use(host: HostFunction) -> JaxUse | None:
    function = host.current
    while isinstance(function, functools.partial):
        function = function.func
    operations = _operations()
    own = _name_in_jax(function, host.name, operations)
    if own:
        return JaxUse(own, jitted=isinstance(function, _COMPILED) and own == host.name)
    for load in loads(host.current):
        name = _name_in_jax(load.value, load.name, operations)
        if name and (load.whole or isinstance(load.value, jnp.ufunc)):  # jnp.add.reduce
            file = load.code.co_filename
            return JaxUse(name, file, load.line, is_cell(file))
    return None


def _name_in_jax(value: Any, written: str, operations: dict[int, str]) -> str:
    """What of JAX's `value` is, if it computes; empty for anything else."""
    return operations.get(id(value), written if isinstance(value, _COMPILED) else "")


def _operations() -> dict[int, str]:
    # Copies, here and of what a module holds: another thread may be importing.
    there = sys.modules.copy()
    modules = [name for name in there if name.startswith(_COMPUTING) and "._" not in name]
    return _operations_of(tuple(modules))


@functools.lru_cache(maxsize=1)
def _operations_of(modules: tuple[str, ...]) -> dict[int, str]:
    """The public names of JAX's operations and transformations, by identity."""
    names = {id(getattr(jax, name)): f"jax.{name}" for name in _TRANSFORMATIONS.split()}
    for module in sorted(modules, key=len, reverse=True):  # the shortest name is the last
        for name, value in vars(sys.modules[module]).copy().items():
            plain = callable(value) and not isinstance(value, type | types.ModuleType)
            if plain and not name.startswith("_") and name not in _HARMLESS:
                names[id(value)] = f"{module}.{name}"
    return names


def warn_of_jax_inside(host: HostFunction, site: Site, platform: str) -> Note | None:
    """Warns, once for each body, where using JAX can block; what is to be noted in any case.

    Args:
        host: the host function of a program that is being lowered.
        site: where it was bound.
        platform: the program is for.
    """
    _lowered[host] = site, platform
    use = jax_inside(host)
    if use is None:
        return None
    if platform != "cpu" or not jax_compat.host_function_can_block():
        return Note(NoteKind.USES_JAX, use=use)
    warn_once(host, site, use)
    return Note(NoteKind.USES_JAX_AND_CAN_BLOCK, use=use)


def advice_for_jax_inside() -> str:
    """What to do about a host call that is inside of JAX, in a few words."""
    if not jax_compat.host_function_can_block():
        return "which computes"
    return f"which can wait for ever: call {_ADVICE}"


_ADVICE = (
    'jax.config.update("jax_cpu_enable_async_dispatch", False) before JAX is first used, or '
    "compute with NumPy in the host function"
)


def warn_once(host: HostFunction, site: Site, use: JaxUse) -> None:
    """Warns that `host` uses JAX, once for each body."""
    code: Any = getattr(host.current, "__code__", None)
    if code is not None:
        if code in _warned:
            return
        _warned.add(code)
    warnings.warn_explicit(
        f"the {site.flavor} callback {host.name}, bound at {site.where}, uses JAX in its host "
        f"function: {use}. On JAX {jax.__version__} that can wait for ever when several calls "
        "are in flight: XLA's threads wait for the host function, and it for them. Call "
        f"{_ADVICE}.",
        JaxInHostFunctionWarning,
        use.file or site.file,
        use.line or site.line,
    )


def look_at_new_body(host: HostFunction) -> None:
    """Warns of JAX in a body that programs call from now on although they were lowered before."""
    for one in () if host.definition is None else list(host.definition.hosts):
        if one in _lowered and one.version > 1:
            warn_of_jax_inside(one, *_lowered[one])
