"""Warn about host functions that use JAX, before a call can deadlock.

Up to JAX 0.11, XLA's CPU client runs host functions on the threads that computations need, and
limits the number of computations in flight. A host function that starts another computation waits
for the earlier ones, which wait for the host function. The deadlock cannot be detected from outside
once it has begun, and a check on every host call would be too slow. So the code of a host function
is checked once, when a program that calls it is lowered.
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

from ... import jax_compat
from ...recording import JaxUse, Note, NoteKind, Site, where_now
from ...stack.call import HostCallback, HostFunction
from ...stack.options import Decides, Options, capability
from ...stack.trace import is_cell
from ._body import reached
from ._effects import is_impure, warn_of_impurity

# Public modules of JAX whose functions compute, and the functions in them that do not.
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
    """A host function uses JAX, which can deadlock on the installed version of JAX.

    The message names the callback and the JAX function it uses, and suggests a fix. To silence the
    warning where this is known to be safe (only one call at a time, for example):

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.JaxInHostFunctionWarning)
    """


_uses: weakref.WeakKeyDictionary[HostFunction, tuple[int, JaxUse | None]]
_uses = weakref.WeakKeyDictionary()
_lowered: weakref.WeakKeyDictionary[HostFunction, tuple[Site, str]] = weakref.WeakKeyDictionary()
_warned: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


def jax_inside(host: HostFunction) -> JaxUse | None:
    """Return the first use of JAX in the code of `host` that is found without running it."""
    known = _uses.get(host)
    if known is None or known[0] != host.version:
        known = _uses[host] = (host.version, _first_use(host))
    return known[1]


def _first_use(host: HostFunction) -> JaxUse | None:
    function: Any = host.current
    while issubclass(type(function), functools.partial):  # it may lie about its class, or raise
        function = function.func
    operations = _operations()
    is_compiled = issubclass(type(function), _COMPILED)
    if is_compiled or id(function) in operations:
        name = operations.get(id(function), host.name)
        return JaxUse(name, jitted=is_compiled and name == host.name)
    for reading in reached(host.current):
        for text, value, line, whole, _ in reading.uses:
            is_compiled = issubclass(type(value), _COMPILED)
            name = operations.get(id(value), text if is_compiled else "")
            if name and (whole or issubclass(type(value), jnp.ufunc)):  # jnp.add.reduce
                return JaxUse(name, reading.file, line, is_cell(reading.file))
    return None


def _operations() -> dict[int, str]:
    # Copy sys.modules and module contents: another thread may be importing.
    there = sys.modules.copy()
    modules = [name for name in there if name.startswith(_COMPUTING) and "._" not in name]
    return _operations_of(tuple(modules))


@functools.lru_cache(maxsize=1)
def _operations_of(modules: tuple[str, ...]) -> dict[int, str]:
    """Return the public names of JAX's operations and transformations, by identity."""
    names = {id(getattr(jax, name)): f"jax.{name}" for name in _TRANSFORMATIONS.split()}
    for module in sorted(modules, key=len, reverse=True):  # the shortest name wins
        for name, value in vars(sys.modules[module]).copy().items():
            plain = callable(value) and not isinstance(value, type | types.ModuleType)
            of_numpy = getattr(value, "__module__", "") == "numpy"  # jnp.savez is np.savez
            if plain and not of_numpy and not name.startswith("_") and name not in _HARMLESS:
                names[id(value)] = f"{module}.{name}"
    return names


def warn_of_jax_inside(callback: HostCallback, platform: str, *_: Any) -> Note | None:
    """Warn if a host function uses JAX where that can deadlock, once for each function body.

    Args:
        callback: the host function of a program that is being lowered.
        platform: the platform of the program.

    Returns:
        A note for the recording, also where JAX is safe to use; None if it does not use JAX.
    """
    host, site = callback.host, callback.bind.site
    _lowered[host] = site, platform
    return _note_of(host, jax_inside(host), site, platform)


def _facts(callback: HostCallback) -> dict[str, Any]:
    impure = callback.options.flavor == "pure" and is_impure(callback.host.current)
    return {"impure": True} if impure else {}


def _look(function: Any, options: Options, registered: bool) -> None:
    if options.flavor == "pure":
        warn_of_impurity(function, registered=registered)


capability(Decides.INSIDE, lambda options: True, note=warn_of_jax_inside, facts=_facts, look=_look)


def warn_of_jax_inside_jaxs_own(function: Any, site: Site, platform: str) -> Note | None:
    """As `warn_of_jax_inside`, for the function of a callback of JAX's own API."""
    host = HostFunction(function)
    return _note_of(host, _first_use(host), site, platform)


def _note_of(host: HostFunction, use: JaxUse | None, site: Site, platform: str) -> Note | None:
    if use is None:
        return None
    if platform != "cpu" or not jax_compat.host_function_can_block():
        return Note(NoteKind.USES_JAX, use=use)
    warn_once(host.current, site, use)
    return Note(NoteKind.USES_JAX_AND_CAN_BLOCK, use=use)


def advice_for_jax_inside() -> str:
    """Return the advice for a host call that is inside of JAX, to follow the name of its use."""
    if not jax_compat.host_function_can_block():
        return "which computes"
    return f"which may deadlock: {_ADVICE}"


_ADVICE = (
    'use NumPy instead, or call jax.config.update("jax_cpu_enable_async_dispatch", False) before '
    "JAX is first used"
)


def warn_once(function: Any, site: Site, use: JaxUse) -> None:
    """Warn that a host function uses JAX, once for each body of a Python function."""
    if type(function) in (types.FunctionType, types.MethodType):
        if function.__code__ in _warned:
            return
        _warned.add(function.__code__)
    warnings.warn_explicit(
        f"the {site.flavor} callback {site.function} ({where_now(site)}) uses JAX in its host "
        f"function: {use.words(where_now)}. This may deadlock on JAX {jax.__version__}; {_ADVICE}.",
        JaxInHostFunctionWarning,
        use.file or site.file,
        use.line or site.line,
    )


def look_at_new_body(host: HostFunction) -> None:
    """Warn about JAX in a new function body that already lowered programs will call."""
    for one in () if host.definition is None else list(host.definition.hosts):
        if one in _lowered and one.version > 1:
            _note_of(one, jax_inside(one), *_lowered[one])
