"""What host calls cannot work without: effects, tokens, rules, shardings, meshes and caches."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import jax
from jax._src import core as _core
from jax._src import dispatch as _dispatch
from jax._src import effects as _effects
from jax._src import mesh as _mesh
from jax._src import sharding_impls as _sharding_impls
from jax._src import source_info_util as _source_info_util
from jax._src import traceback_util as _traceback_util
from jax._src import util as _util
from jax._src.callback import _callback_op_sharding
from jax._src.interpreters import partial_eval as _partial_eval
from jax._src.interpreters.mlir import TokenSet as TokenSet
from jax._src.interpreters.mlir import set_sharding as _set_sharding
from jax._src.state import discharge as _discharge
from jax.core import ShapedArray
from jax.debug import callback as _debug_callback
from jax.experimental import io_callback as _io_callback
from jax.extend.core import Effect as Effect
from jax.extend.core import Primitive as Primitive
from jax.ffi import build_ffi_lowering_function as build_ffi_lowering_function
from jax.interpreters import ad as ad
from jax.interpreters import batching as batching
from jax.interpreters import mlir as mlir
from jax.interpreters.partial_eval import (
    partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules,
)

# What JAX passes to a lowering. The alias says for readers which class of JAX a value has.
LoweringContext = Annotated[Any, "jax._src.interpreters.mlir.LoweringRuleContext"]

runtime_tokens = _dispatch.runtime_tokens  # thread-local
abstract_token = _core.abstract_token  # the aval of an ordering token
apply_primitive = _dispatch.apply_primitive  # compiles and runs one on several devices, eagerly


def shaped_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the aval of an array that is not weakly typed."""
    return ShapedArray(shape, dtype)


@functools.cache
def jax_effect(flavor: str, ordered: bool) -> Effect:
    """Return JAX's own effect object for io or debug callbacks, read from a jaxpr that has one.

    This package's callbacks carry the same object. So JAX applies its checks (vmap of cond and
    while, several devices) to them, and its tokens order them together with JAX's own callbacks.
    """
    # Both functions were imported with this module: a program that replaced JAX's callbacks by ours
    # would find ours if it looked them up now.
    if flavor == "io":
        jaxpr = jax.make_jaxpr(lambda: _io_callback(_nothing, None, ordered=ordered))()
    else:
        jaxpr = jax.make_jaxpr(lambda: _debug_callback(_nothing, ordered=ordered))()
    (effect,) = jaxpr.effects
    return effect


def _nothing() -> None: ...


def keep_under_partial_evaluation(effect_type: type[Effect]) -> None:
    """Register an unordered effect that gradients of loops and checkpoints do not drop."""
    _effects.lowerable_effects.add_type(effect_type)
    _effects.control_flow_allowed_effects.add_type(effect_type)
    _effects.custom_derivatives_allowed_effects.add_type(effect_type)
    _effects.partial_eval_kept_effects.add_type(effect_type)
    _effects.remat_allowed_effects.add_type(effect_type)


def keep_and_order(effect_type: type[Effect]) -> None:
    """Register an ordered effect that is kept everywhere; in a checkpoint it may run twice.

    It works over several devices too, because a single token goes through the program.
    """
    keep_under_partial_evaluation(effect_type)
    _effects.ordered_effects.add_type(effect_type)
    _effects.shardable_ordered_effects.add_type(effect_type)


def has_ordered_effects(jaxpr: Any) -> bool:
    """Return whether a jaxpr, closed or not, or an equation has an ordered effect."""
    return bool(_effects.ordered_effects.filter_in(jaxpr.effects))


def leaves_references_as_they_are(primitive: Primitive) -> None:
    """Let `primitive`, which returns nothing, be used in loops that hold mutable references."""
    # Before the operands, JAX passes the avals of operands and results, since 0.11.1 one context.
    leading = 1 if jax.__version_info__ >= (0, 11, 1) else 2

    def rule(*args: Any, **params: Any) -> tuple[Any, Any]:
        return args[leading:], primitive.bind(*args[leading:], **params)

    _discharge.register_discharge_rule(primitive)(rule)


def requires_devices_during_lowering(primitive: Primitive) -> None:
    """Make JAX pass the device assignment to the lowering, which ``sharding=`` needs."""
    _dispatch.prim_requires_devices_during_lowering.add(primitive)


def callback_sharding(ctx: LoweringContext, sharding: Any, avals_out: Any) -> Any:
    """Return where the custom call runs: once on the whole array, or per device on its shard.

    Args:
        ctx: JAX's lowering context.
        sharding: a SingleDeviceSharding, None, or the index of the device in the program, for
            callers that do not know the devices.
        avals_out: the output avals of the call.

    Raises:
        NotImplementedError: in a partly manual ``shard_map``, as JAX's own callbacks do.
    """
    context = ctx.module_context.axis_context
    if not isinstance(sharding, int):
        return _callback_op_sharding(context, sharding, avals_out)
    found: Any = _callback_op_sharding(context, None, avals_out)
    if not sharding or getattr(context, "num_devices", 1) == 1:
        return found
    shardings = getattr(found, "shardings", None)
    if shardings is None:  # without Shardy
        found.tile_assignment_devices = [sharding]
        return found
    kind: Any = type(shardings[0])
    there = kind(mesh_shape=(), dim_shardings=(), logical_device_ids=(sharding,))
    return type(found)((there,) * len(shardings))


def set_sharding(ctx: LoweringContext, op: Any, sharding: Any) -> None:
    """Annotate `op` with where it runs."""
    if jax.__version_info__ < (0, 10, 1):
        _set_sharding(op, sharding)  # type: ignore
    else:
        _set_sharding(ctx.module_context, op, sharding)


def wait_for_ordered(effect: Effect) -> None:
    """Block until all programs that this thread dispatched with the ordered `effect` are done.

    Inside a host call this does not wait for the surrounding program: its token is only set when
    the dispatch returns, and XLA's threads have their own tokens.
    """
    token = runtime_tokens.current_tokens.get(effect)
    if token is None:
        return
    try:
        token.block_until_ready()
    except BaseException:
        forget_tokens()  # otherwise every later ordered call raises this again
        raise


def forget_tokens() -> None:
    """Drop this thread's runtime tokens, so that a failed call does not make later ones fail."""
    runtime_tokens.clear()


def after_barriers(wait: Callable[[], None], settle: Callable[[], None]) -> None:
    """Extend every `jax.effects_barrier`, and JAX's own one at exit.

    Args:
        wait: called if the barrier raises the error of a program.
        settle: called otherwise; may raise.
    """
    kind: Any = type(runtime_tokens)
    original = kind.block_until_ready

    @functools.wraps(original)
    def block_until_ready(self: Any) -> None:
        __tracebackhide__ = True
        try:
            original(self)
        except Exception:
            wait()
            raise
        settle()

    kind.block_until_ready = block_until_ready


def current_trace() -> Any:
    """Return the trace that this thread's operations go to."""
    return _core.trace_ctx.trace


def traces() -> Iterator[Any]:
    """Yield the traces that this thread's operations go through, the innermost first."""
    trace = current_trace()
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent_trace", None)


def jaxpr_trace() -> Any:
    """Return the innermost trace that builds a jaxpr; None if operations run immediately."""
    kind = _partial_eval.DynamicJaxprTrace
    return next((trace for trace in traces() if type(trace) is kind), None)


def is_staging() -> bool:
    """Return whether operations of this thread are traced now, and not executed."""
    return jaxpr_trace() is not None


@contextlib.contextmanager
def without_mesh() -> Iterator[None]:
    """Hide the meshes that the surrounding code has set."""
    with (
        _sharding_impls._internal_use_concrete_mesh(_mesh.empty_concrete_mesh),
        _mesh.use_abstract_mesh(_mesh.empty_abstract_mesh),
        contextlib.nullcontext()
        if _mesh.thread_resources.env.physical_mesh.empty  # of `with mesh:`
        else _mesh.EMPTY_ENV.physical_mesh,
    ):
        yield


def held_weakly(kind: type) -> type:
    """Make JAX's caches hold parameters of the class `kind` weakly; a class decorator.

    JAX does so for functions, and for jaxprs through this table. Otherwise the cache of abstract
    evaluation keeps every traced host function, and everything it refers to, alive until
    `jax.clear_caches`.
    """
    _util.weakref_cache_key_types.add(kind)
    return kind


def key_implementation(dtype: Any) -> str | None:
    """Return the name of the PRNG implementation of a key `dtype`; None for other dtypes."""
    return dtype._impl.name if jax.numpy.issubdtype(dtype, jax.dtypes.prng_key) else None


def host_function_can_block() -> bool:
    """Return whether XLA's CPU client can deadlock with a host function that uses JAX.

    It can until JAX 0.11.2 with asynchronous dispatch, but not in 0.12.0.
    """
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    return jax.__version_info__ < (0, 12) and bool(asynchronous)


_OURS = ("jax_compat", "stack", "capabilities", "register", "diagnostics", "host_callback")


def leave_out_of_tracebacks() -> None:
    """Make JAX treat the frames of this package's stack as its own.

    Otherwise the source locations in JAX's programs and errors would point into this package.
    """
    package = str(sys.modules[__name__.partition(".")[0]].__file__)
    for part in _OURS:
        folder = os.path.join(os.path.dirname(os.path.abspath(package)), part)
        _source_info_util.register_exclusion(folder)
        _traceback_util.register_exclusion(folder)
