"""A call becomes an equation, and the equation a custom call. One primitive serves every flavor.

The rules are in JAX's order: abstract evaluation, impl, jvp, batching, lowering. What differs
between flavors is a row of `FLAVORS`.
"""

from __future__ import annotations

import dataclasses
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import jax_compat
from ..stack import is_cell, is_user_code
from . import _elision
from ._dispatch import HostCallError, crossing, host_error, name_of
from ._recording import Site, VmapLevel, active


class Flavor(NamedTuple):
    """What JAX and XLA may do with the calls of a flavor."""

    effect: Any  # JAX's effect, which keeps an equation; None: there is none
    side_effect: bool  # XLA must keep the custom call
    derivative: str  # "rule": only by the user's rule; "passes": differentiation ignores the call


FLAVORS = {
    "pure": Flavor(None, False, "rule"),
    "io": Flavor(jax_compat.jax_effect("io", ordered=False), True, "rule"),
    "debug": Flavor(jax_compat.jax_effect("debug", ordered=False), True, "passes"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class HostCallback:
    """The static parameter of an equation: a host function, as one bind calls it."""

    function: Callable[..., Any]
    vmap_method: str
    in_tree: Any
    out_tree: Any
    site: Site

    def __repr__(self) -> str:  # in every jaxpr that is printed
        return f"{self.site.function}@{self.site.line}"


host_call_p = jax_compat.Primitive("jaxcb_host_call")
host_call_p.multiple_results = True


def bind(
    flavor: str, function: Callable[..., Any], vmap_method: str, result: Any, args: tuple[Any, ...]
) -> Any:
    """Bind one call; return a pytree like `result`."""
    __tracebackhide__ = True
    flat, in_tree = jax.tree.flatten(args)
    leaves, out_tree = jax.tree.flatten(result)
    site = _site(flavor, function)
    callback = HostCallback(function, vmap_method, in_tree, out_tree, site)
    avals = tuple(jax_compat.shaped_array(x.shape, x.dtype) for x in leaves)
    results = host_call_p.bind(*flat, callback=callback, result_avals=avals, levels=())
    return jax.tree.unflatten(out_tree, results)


_is_user: dict[str, bool] = {}  # by file


def _site(flavor: str, function: Callable[..., Any]) -> Site:
    """Return the innermost line of user code on the stack."""
    name = name_of(function)
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        is_user = _is_user.get(file)
        if is_user is None:
            is_user = _is_user[file] = is_user_code(file)
        if is_user:
            break
        frame = frame.f_back
    if frame is None:  # on a library's thread, for example
        return Site(name, flavor, "an unknown line", 0, 0, False, "")
    file, line = frame.f_code.co_filename, frame.f_lineno
    column = list(frame.f_code.co_positions())[frame.f_lasti // 2][2] or 0
    source = linecache.getline(file, line).strip()
    return Site(name, flavor, file, line, column, is_cell(file), source)


@host_call_p.def_effectful_abstract_eval
def _abstract_eval(*avals: Any, callback: HostCallback, result_avals: Any, levels: Any) -> Any:
    effect = FLAVORS[callback.site.flavor].effect
    return list(result_avals), set() if effect is None else {effect}


@host_call_p.def_impl
def _impl(*args: Any, callback: HostCallback, result_avals: Any, levels: Any) -> list[Any]:
    """Call the host function directly: nothing is compiled."""
    arrays = [np.asarray(x, jax.dtypes.canonicalize_dtype(jnp.result_type(x))) for x in args]
    record = _elision.site_record(callback, levels, result_avals, arrays, None)
    recorder = active()
    if recorder is not None:
        key = callback.site, callback.function, record.operands, record.results, levels
        record = recorder.eager.setdefault(key, record)
    try:
        return list(map(jnp.asarray, crossing(callback, record, result_avals)(*arrays)))
    except HostCallError as error:
        raise jax.errors.JaxRuntimeError(str(error)) from host_error(error)


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    __tracebackhide__ = True
    site = params["callback"].site
    if FLAVORS[site.flavor].derivative == "rule":
        raise ValueError(
            f"cannot differentiate {site.function}: host functions have no derivative. Give it "
            f"one: {site.function}.defjvp(rule)."
        )
    return host_call_p.bind(*primals, **params), []


def _batch(args: Any, dims: Any, *, callback: Any, result_avals: Any, levels: Any) -> Any:
    """Move the batch axes to the front; the crossing loops over them."""
    (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
    level = VmapLevel(size, callback.vmap_method, tuple(dim is not None for dim in dims))
    operands = [
        x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)
    ]
    avals = tuple(jax_compat.shaped_array((size, *y.shape), y.dtype) for y in result_avals)
    params = {"callback": callback, "result_avals": avals, "levels": (*levels, level)}
    return host_call_p.bind(*operands, **params), [0] * len(avals)


def _lower(ctx: Any, *operands: Any, callback: Any, result_avals: Any, levels: Any) -> Any:
    """Emit the custom call through which XLA calls Python."""
    if jax_compat.device_count(ctx) > 1 or jax_compat.shard_count(ctx) > 1:
        raise NotImplementedError(f"cannot lower {callback} for several devices.")
    module = ctx.module_context
    index = len(module.host_callbacks)
    record = _elision.lowered(callback, levels, index)
    if record is None:
        record = _elision.site_record(callback, levels, result_avals, ctx.avals_in, None)
    module.add_host_callback(crossing(callback, record, result_avals))
    emit = jax_compat.build_ffi_lowering_function(
        f"xla_ffi_python_{module.platforms[0]}_callback",
        has_side_effect=FLAVORS[callback.site.flavor].side_effect,
    )
    return emit(ctx, *operands, index=np.uint64(index)).results


jax_compat.ad.primitive_jvps[host_call_p] = _jvp
jax_compat.batching.primitive_batchers[host_call_p] = _batch
# cacheable=False: with one cached lowering XLA merges equal calls that JAX's own callbacks keep
# apart, so instrumenting a program would change its number of calls.
jax_compat.mlir.register_lowering(host_call_p, _lower, cacheable=False)
