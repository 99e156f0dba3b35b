"""What callbacks cannot do without: without any of it the import of this package fails.

What is imported at the top, or listed there, has no fallback. Every other use says what happens
without it.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Any

import jax
from jax.core import ShapedArray
from jax.debug import callback as _debug_callback
from jax.experimental import io_callback as _io_callback

try:
    from jax._src import core as _core
    from jax._src import dispatch as _dispatch
    from jax._src import effects as _effects
    from jax._src.callback import _callback_op_sharding
    from jax._src.debugging import debug_callback_p as _jax_debug_callback_p
    from jax._src.effects import Effect as Effect  # in jax.extend.core since 0.9 only
    from jax._src.interpreters.mlir import TokenSet as TokenSet
    from jax._src.interpreters.mlir import set_sharding as _set_sharding
    from jax._src.state import discharge as _discharge
    from jax.extend.core import Primitive as Primitive
    from jax.ffi import build_ffi_lowering_function as build_ffi_lowering_function
    from jax.interpreters import ad as ad
    from jax.interpreters import batching as batching
    from jax.interpreters import mlir as mlir
    from jax.interpreters.partial_eval import (
        partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules,
    )

    for _needed in (
        "core.abstract_token state.discharge._discharge_rules "
        "state.discharge.register_discharge_rule dispatch.apply_primitive "
        "dispatch.prim_requires_devices_during_lowering dispatch.runtime_tokens.clear "
        "dispatch.runtime_tokens.current_tokens dispatch.runtime_tokens.output_runtime_tokens "
        "effects.control_flow_allowed_effects "
        "effects.custom_derivatives_allowed_effects effects.lowerable_effects "
        "effects.partial_eval_kept_effects effects.ordered_effects "
        "effects.shardable_ordered_effects effects.remat_allowed_effects"
    ).split():
        operator.attrgetter(_needed)(jax._src)  # type: ignore
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"jupyter_jaxcb does not know JAX {jax.__version__}: {error}. It was tested with "
        "JAX 0.8.0 to 0.12.0; install one of these, or a newer jupyter_jaxcb."
    ) from error

runtime_tokens = _dispatch.runtime_tokens  # of each thread
abstract_token = _core.abstract_token  # the aval of an ordering token; no public name in 0.8


def shaped_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """The aval of an array without weak type."""
    return ShapedArray(shape, dtype)


@functools.cache
def jax_effect(flavor: str, ordered: bool) -> Effect:
    """JAX's own effect object for io or debug callbacks, read off a jaxpr that has one.

    Ours carry the same object: JAX's refusals (vmap of cond and while, several devices) and its
    token order then hold for ours and among JAX's callbacks and ours.
    """
    # Both functions are kept from when this module was imported: in a program that has put ours
    # in their place, looking them up now would find ours.
    if flavor == "io":
        jaxpr = jax.make_jaxpr(lambda: _io_callback(_nothing, None, ordered=ordered))()
    else:
        jaxpr = jax.make_jaxpr(lambda: _debug_callback(_nothing, ordered=ordered))()
    (effect,) = jaxpr.effects
    return effect


def _nothing() -> None: ...


def keep_under_partial_evaluation(effect_type: type[Effect]) -> None:
    """Registers an unordered effect that gradients of loops do not drop.

    The four sets are private; `mlir.lowerable_effects` alone has a public name.
    """
    _effects.lowerable_effects.add_type(effect_type)
    _effects.control_flow_allowed_effects.add_type(effect_type)
    _effects.custom_derivatives_allowed_effects.add_type(effect_type)
    _effects.partial_eval_kept_effects.add_type(effect_type)


def keep_and_order(effect_type: type[Effect]) -> None:
    """Registers an ordered effect that is kept everywhere, once or twice in a checkpoint.

    Over several devices too: one token goes through the program.
    """
    keep_under_partial_evaluation(effect_type)
    _effects.ordered_effects.add_type(effect_type)
    _effects.shardable_ordered_effects.add_type(effect_type)
    _effects.remat_allowed_effects.add_type(effect_type)


def has_ordered_effects(jaxpr: Any) -> bool:
    """Whether a closed jaxpr holds an effect that keeps the order of the program."""
    return bool(_effects.ordered_effects.filter_in(jaxpr.effects))


def leaves_references_as_they_are(primitive: Primitive) -> None:
    """Lets `primitive`, which returns nothing, read mutable references inside of loops.

    A rule gets the avals before the operands in JAX 0.8 and 0.10, one context in 0.12: as many
    leading arguments as JAX's own rule for its debug callback.
    """
    own = _discharge._discharge_rules[_jax_debug_callback_p]
    kinds = [p.kind for p in inspect.signature(own).parameters.values()]
    leading = kinds.index(inspect.Parameter.VAR_POSITIONAL)

    def rule(*args: Any, **params: Any) -> tuple[Any, Any]:
        return args[leading:], primitive.bind(*args[leading:], **params)

    _discharge.register_discharge_rule(primitive)(rule)


def requires_devices_during_lowering(primitive: Primitive) -> None:
    """Makes JAX pass the device assignment to the lowering; ``sharding=`` needs it."""
    _dispatch.prim_requires_devices_during_lowering.add(primitive)


def apply_primitive(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Compiles and runs one primitive: eager operands that span several devices."""
    return _dispatch.apply_primitive(primitive, *args, **params)


def callback_sharding(ctx: Any, sharding: Any, avals_out: Any) -> Any:
    """Where the custom call runs: once on the whole array, or once per device with its shard.

    Args:
        ctx: JAX's lowering context.
        sharding: a SingleDeviceSharding, None, or a number: the device's place in the program,
            for what has no other choice, as it does not know the devices.
        avals_out: of the call.

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


def set_sharding(ctx: Any, op: Any, sharding: Any) -> None:
    """Annotates `op`; JAX 0.8 does not take the module context that later versions want."""
    if len(inspect.signature(_set_sharding).parameters) == 2:
        _set_sharding(op, sharding)  # type: ignore
    else:
        _set_sharding(ctx.module_context, op, sharding)


def wait_for_ordered(effect: Effect) -> None:
    """Blocks until every dispatched program that this thread ordered by `effect` is done.

    Inside a host call it does not wait for the program it is in: that one's token is set when its
    dispatch returns, and threads of XLA's have tokens of their own.
    """
    token = runtime_tokens.current_tokens.get(effect)
    if token is None:
        return
    try:
        token.block_until_ready()
    except BaseException:
        forget_tokens()  # or every later ordered call raises this again
        raise


def forget_tokens() -> None:
    """Drops this thread's runtime tokens, so that a failed call does not poison later ones."""
    runtime_tokens.clear()
