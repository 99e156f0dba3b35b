"""Every piece of JAX that is not public API, and nothing else.

When a JAX release breaks us, this is the file to read. Seen in JAX 0.8.0, 0.10.2 and 0.12.0.
`jax.extend` and `jax.interpreters` carry no stability promise either, so they live here too.
What is imported at the top, or listed there, has no fallback: without it the import of this package
fails and names the versions that work. Every other use says what happens without it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import operator
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import jax
from jax.core import ShapedArray
from jax.debug import callback as _debug_callback
from jax.experimental import io_callback as _io_callback

try:
    from jax._src import core as _core
    from jax._src import dispatch as _dispatch
    from jax._src import effects as _effects
    from jax._src import mesh as _mesh
    from jax._src import sharding_impls as _sharding_impls
    from jax._src import xla_bridge as _xla_bridge
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
        "dispatch.runtime_tokens.current_tokens effects.control_flow_allowed_effects "
        "effects.custom_derivatives_allowed_effects effects.lowerable_effects "
        "effects.partial_eval_kept_effects"
    ).split():
        operator.attrgetter(_needed)(jax._src)  # type: ignore
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"jupyter_jaxcb does not know JAX {jax.__version__}: {error}. It was tested with "
        "JAX 0.8.0 to 0.12.0; install one of these, or a newer jupyter_jaxcb."
    ) from error

try:
    from jax._src.lib.mlir.dialects import hlo as _hlo
except ImportError:
    _hlo = None

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

    Raises:
        NotImplementedError: in a partly manual ``shard_map``, as JAX's own callbacks do.
    """
    return _callback_op_sharding(ctx.module_context.axis_context, sharding, avals_out)


def automatic_axes(ctx: Any) -> tuple[str, ...]:
    """The mesh axes that a partly manual ``shard_map`` leaves to XLA; none anywhere else."""
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None)
    if manual is None:
        return ()
    return tuple(axis for axis in context.mesh.axis_names if axis not in manual)


def is_for_export(ctx: Any) -> bool:
    """Whether `jax.export` lowers; if it does not say so, its own words follow later."""
    parameters = getattr(ctx.module_context, "lowering_parameters", None)
    return getattr(parameters, "for_export", False)


def device_count(ctx: Any) -> int:
    """For how many devices one call stands: those of jit over several; 1 in a ``shard_map``."""
    return getattr(ctx.module_context.axis_context, "num_devices", 1)


def shard_count(ctx: Any) -> int:
    """On how many devices a call is made, each with its shard: ``shard_map``, ``pmap``; else 1."""
    context = ctx.module_context.axis_context
    if getattr(context, "manual_axes", None) and not automatic_axes(ctx):
        return context.mesh.size
    return math.prod(getattr(getattr(context, "axis_env", None), "sizes", ()) or ())


def shard_number(ctx: Any) -> Any:
    """The IR value of which of these devices it is, uint32; None where JAX has no way to it."""
    manual = getattr(ctx.module_context.axis_context, "manual_axes", None)
    number = getattr(_hlo, "partition_id" if manual else "replica_id", None)
    return None if number is None else number()


def set_sharding(ctx: Any, op: Any, sharding: Any) -> None:
    """Annotates `op`; JAX 0.8 does not take the module context that later versions want."""
    if len(inspect.signature(_set_sharding).parameters) == 2:
        _set_sharding(op, sharding)  # type: ignore
    else:
        _set_sharding(ctx.module_context, op, sharding)


def program_name(ctx: Any) -> str:
    """The name of the module being lowered, ``jit_f``."""
    attributes = ctx.module_context.module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "unnamed"


def wait_for_ordered(effect: Effect) -> None:
    """Blocks until every dispatched program that this thread ordered by `effect` is done.

    Inside a host call it does not wait for the program it is in: that one's token is set when its
    dispatch returns, and threads of XLA's have tokens of their own.
    """
    token = _dispatch.runtime_tokens.current_tokens.get(effect)
    if token is None:
        return
    try:
        token.block_until_ready()
    except BaseException:
        forget_tokens()  # or every later ordered call raises this again
        raise


def key_implementation(dtype: Any) -> str | None:
    """The name of the implementation of PRNG keys of `dtype`; None for what is no key.

    A key has public ways to ask this; its dtype has none. Where the attribute is gone, host
    functions that ask for JAX arrays get the key's data.
    """
    return getattr(getattr(dtype, "_impl", None), "name", None)


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


def lowers_predicate_that_goes_wrong() -> bool:
    """Whether JAX is lowering a vmapped while loop with an ordered effect in its predicate.

    That lowering forgets to hold the lanes that have finished, in all versions: wrong numbers, no
    error. The rule's own frame tells; nothing else does once it has begun.
    """
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_while_lowering":
            variables = frame.f_locals
            if variables.get("batched") and variables.get("cond_ordered_effects"):
                return True
        frame = frame.f_back
    return False


# JAX's functions that trace what they are given: what for, and the variable with its size.
_TRACES = {
    ("loops.py", "scan"): ("scan", "length"),
    ("loops.py", "while_loop"): ("while", ""),
    ("conditionals.py", "cond"): ("cond", ""),
    ("conditionals.py", "switch"): ("cond", ""),
    ("api.py", "vmap_f"): ("vmap", "axis_size_"),
    ("custom_derivatives.py", "__call__"): ("rule", ""),
    ("pjit.py", "_infer_params"): ("jit", ""),
    ("pjit.py", "cache_miss"): ("dispatch", ""),
    ("api.py", "eval_shape"): ("shape", ""),
    ("api.py", "make_jaxpr_f"): ("look", ""),
}
_TRACERS = frozenset(name for _, name in _TRACES)


def traced_by(frame: FrameType) -> tuple[str, int | None] | None:
    """What a frame of JAX's traces: ``("scan", 5)``, ``("jit", None)``; None for most frames.

    In a JAX whose functions have other names nothing is known of what is around a bind, and no
    callback is said to have left its loop.
    """
    code = frame.f_code
    if code.co_name not in _TRACERS:
        return None
    found = _TRACES.get((os.path.basename(code.co_filename), code.co_name))
    if found is None:
        return None
    kind, variable = found
    size = frame.f_locals.get(variable) if variable else None
    return kind, size if isinstance(size, int) else None


def backend_name() -> str:
    """The default backend, ``cpu``; ``not started`` before JAX is used.

    Asking `jax.default_backend` would start it: too late then for options and
    ``jax.distributed.initialize``.
    """
    started = getattr(_xla_bridge, "backends_are_initialized", lambda: True)
    return jax.default_backend() if started() else "not started"


def forget_tokens() -> None:
    """Drops this thread's runtime tokens, so that a failed call does not poison later ones."""
    _dispatch.runtime_tokens.clear()
