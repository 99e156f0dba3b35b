"""The private JAX API that callbacks cannot work without.

If anything imported or listed at the top is missing, importing this package fails. Every other use
of private API says what happens without it.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Annotated, Any

import jax
from jax.core import ShapedArray
from jax.debug import callback as _debug_callback
from jax.experimental import io_callback as _io_callback

if jax.__version_info__ < (0, 10):
    raise ImportError(
        f"jupyter_jaxcb does not support JAX {jax.__version__}. Install JAX 0.10.0 to 0.12.0."
    )
try:
    from jax._src import core as _core
    from jax._src import dispatch as _dispatch
    from jax._src import effects as _effects
    from jax._src import sharding_impls as _sharding_impls
    from jax._src.callback import _callback_op_sharding
    from jax._src.debugging import debug_callback_p as _jax_debug_callback_p
    from jax._src.interpreters.mlir import TokenSet as TokenSet
    from jax._src.interpreters.mlir import set_sharding as _set_sharding
    from jax._src.state import discharge as _discharge
    from jax.extend.core import Effect as Effect
    from jax.extend.core import Primitive as Primitive
    from jax.ffi import build_ffi_lowering_function as build_ffi_lowering_function
    from jax.interpreters import ad as ad
    from jax.interpreters import batching as batching
    from jax.interpreters import mlir as mlir
    from jax.interpreters.partial_eval import (
        partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules,
    )

    for _needed in (
        "core.abstract_token core.Primitive.bind state.discharge._discharge_rules "
        "state.discharge.register_discharge_rule dispatch.apply_primitive "
        "dispatch.prim_requires_devices_during_lowering dispatch.runtime_tokens.clear "
        "dispatch.runtime_tokens.current_tokens dispatch.runtime_tokens.output_runtime_tokens "
        "effects.control_flow_allowed_effects.add_type "
        "effects.custom_derivatives_allowed_effects.add_type effects.lowerable_effects.add_type "
        "effects.partial_eval_kept_effects.add_type effects.ordered_effects.add_type "
        "effects.ordered_effects.filter_in effects.shardable_ordered_effects.add_type "
        "effects.remat_allowed_effects.add_type "
        "interpreters.mlir.LoweringRuleContext.set_tokens_out interpreters.mlir.TokenSet.get "
        "interpreters.mlir.TokenSet.update_tokens"
    ).split():
        operator.attrgetter(_needed)(jax._src)  # type: ignore
    for _needed in (  # the rest of this package uses these
        "ad.Zero ad.instantiate_zeros ad.is_undefined_primal ad.primitive_jvps "
        "ad.primitive_transposes "
        "batching.primitive_batchers mlir.emit_python_callback mlir.ir_attribute mlir.ir_constant "
        "mlir.lower_fun mlir.register_lowering"
    ).split():
        operator.attrgetter(_needed)(jax.interpreters)  # type: ignore
    for _class, _field in (
        (mlir.LoweringRuleContext, "avals_in"),
        (mlir.LoweringRuleContext, "avals_out"),
        (mlir.LoweringRuleContext, "module_context"),
        (mlir.LoweringRuleContext, "tokens_in"),
        (mlir.LoweringRuleContext, "traceback"),
        (mlir.ModuleContext, "axis_context"),
        (mlir.ModuleContext, "host_callbacks"),
        (mlir.ModuleContext, "module"),
        (mlir.ModuleContext, "platforms"),
        (_sharding_impls.ShardingContext, "num_devices"),
        (_sharding_impls.SPMDAxisContext, "manual_axes"),
        (_sharding_impls.SPMDAxisContext, "mesh"),
    ):
        if _field not in _class.__dataclass_fields__:
            raise AttributeError(f"{_class.__name__} has no field {_field!r}")
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"jupyter_jaxcb does not support JAX {jax.__version__}: {error}. Install JAX 0.10.0 to "
        "0.12.0, or a newer jupyter_jaxcb."
    ) from error

# What JAX passes to a lowering. Such an alias says which class of JAX a value has, for readers.
LoweringContext = Annotated[Any, "jax._src.interpreters.mlir.LoweringRuleContext"]

runtime_tokens = _dispatch.runtime_tokens  # thread-local
abstract_token = _core.abstract_token  # the aval of an ordering token


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
    """Register an unordered effect that gradients of loops do not drop.

    The four sets are private; only `mlir.lowerable_effects` has a public name.
    """
    _effects.lowerable_effects.add_type(effect_type)
    _effects.control_flow_allowed_effects.add_type(effect_type)
    _effects.custom_derivatives_allowed_effects.add_type(effect_type)
    _effects.partial_eval_kept_effects.add_type(effect_type)


def keep_and_order(effect_type: type[Effect]) -> None:
    """Register an ordered effect that is kept everywhere; in a checkpoint it may run twice.

    It works over several devices too, because a single token goes through the program.
    """
    keep_under_partial_evaluation(effect_type)
    _effects.ordered_effects.add_type(effect_type)
    _effects.shardable_ordered_effects.add_type(effect_type)
    _effects.remat_allowed_effects.add_type(effect_type)


def has_ordered_effects(jaxpr: Any) -> bool:
    """Return whether a jaxpr, closed or not, or an equation has an ordered effect."""
    return bool(_effects.ordered_effects.filter_in(jaxpr.effects))


def leaves_references_as_they_are(primitive: Primitive) -> None:
    """Let `primitive`, which returns nothing, be used in loops that hold mutable references.

    Before the operands, JAX passes a rule the avals (0.10) or a single context (0.12). The
    number of leading arguments is read from JAX's own rule for its debug callback.
    """
    own = _discharge._discharge_rules[_jax_debug_callback_p]
    kinds = [p.kind for p in inspect.signature(own).parameters.values()]
    leading = kinds.index(inspect.Parameter.VAR_POSITIONAL)

    def rule(*args: Any, **params: Any) -> tuple[Any, Any]:
        return args[leading:], primitive.bind(*args[leading:], **params)

    _discharge.register_discharge_rule(primitive)(rule)


def requires_devices_during_lowering(primitive: Primitive) -> None:
    """Make JAX pass the device assignment to the lowering, which ``sharding=`` needs."""
    _dispatch.prim_requires_devices_during_lowering.add(primitive)


def apply_primitive(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Compile and run one primitive eagerly, on operands that span several devices."""
    return _dispatch.apply_primitive(primitive, *args, **params)


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
    """Annotate `op`; later versions of JAX than 0.10.0 also take the module context."""
    if len(inspect.signature(_set_sharding).parameters) == 2:
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
