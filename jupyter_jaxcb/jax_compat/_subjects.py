"""The private names of JAX that this package uses, by subject; a subject without one is off.

The names were seen in all releases of JAX from 0.10.0 to 0.12.0, or in those of them that
their line says. Without a name of "calls" the import of this package fails. If a name of another
subject is missing, that subject is off: its first use warns, and host calls work without it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import jax

# By module in `jax._src`. A name in a class is one of its attributes or fields, and a name in a
# function is a function defined in it, or a variable. ">=0.12": in these versions only.
NAMES = {
    "calls": {
        "callback": "_callback_op_sharding",
        "core": "Primitive.bind ShapedArray.manual_axis_type ManualAxisType.varying abstract_token "
        "jaxpr_as_fun subjaxprs trace_ctx.trace",
        "debugging": "debug_callback_p",
        "dispatch": "apply_primitive prim_requires_devices_during_lowering "
        "runtime_tokens.block_until_ready runtime_tokens.clear runtime_tokens.current_tokens "
        "runtime_tokens.output_runtime_tokens",
        "effects": "control_flow_allowed_effects.add_type "
        "custom_derivatives_allowed_effects.add_type lowerable_effects.add_type "
        "ordered_effects.add_type ordered_effects.filter_in partial_eval_kept_effects.add_type "
        "remat_allowed_effects.add_type shardable_ordered_effects.add_type",
        "interpreters.ad": "JVPTrace.parent_trace",
        "interpreters.batching": "AxisData.name AxisData.spmd_name fancy_primitive_batchers",
        "interpreters.mlir": "LoweringParameters.for_export LoweringRuleContext.avals_in "
        "LoweringRuleContext.avals_out LoweringRuleContext.module_context "
        "LoweringRuleContext.set_tokens_out LoweringRuleContext.tokens_in "
        "LoweringRuleContext.traceback ModuleContext.axis_context ModuleContext.host_callbacks "
        "ModuleContext.lowering_parameters ModuleContext.module ModuleContext.platforms "
        "TokenSet.get TokenSet.update_tokens set_sharding",
        "interpreters.partial_eval": "DynamicJaxprTrace JaxprTrace.default_process_primitive "
        "JaxprTrace.instantiate_const custom_partial_eval_rules",
        "interpreters.pxla": "lower_sharding_computation.device_assignment",
        "lax.control_flow.loops": "_scan_known_hoisting _scan_partial_eval_custom _while_lowering "
        "while_p",
        "lib.mlir.dialects": "hlo.partition_id hlo.replica_id",
        "mesh": "EMPTY_ENV.physical_mesh empty_abstract_mesh empty_concrete_mesh "
        "thread_resources.env.physical_mesh use_abstract_mesh",
        "prng": "KeyTy._impl<0.10.2 PRNGImpl.name<0.10.2",
        "random.prng": "KeyTy._impl>=0.10.2 PRNGImpl.name>=0.10.2",
        "sharding_impls": "SPMDAxisContext.manual_axes SPMDAxisContext.mesh "
        "ShardingContext.abstract_mesh ShardingContext.device_assignment "
        "ShardingContext.num_devices _internal_use_concrete_mesh",
        "source_info_util": "register_exclusion",
        "state.discharge": "register_discharge_rule",
        "traceback_util": "register_exclusion",
        "util": "weakref_cache_key_types",
    },
    "statuses": {
        "api": "device_put eval_shape linear_transpose make_jaxpr.make_jaxpr_f "
        "vmap.vmap_f.axis_size_",
        "config": "pgle_profiling_runs",
        "core": "Primitive.bind ClosedJaxpr.replace<0.11",
        "custom_batching": "ClosedRule.__call__ custom_vmap.__call__",
        "custom_derivatives": "_closure_convert_for_avals _flatten_bwd _flatten_fwd _flatten_jvp "
        "custom_jvp.__call__ custom_vjp.__call__",
        "dispatch": "xla_primitive_callable.prim_fun",
        "hijax": "_custom_jvp_rule.rule>=0.12 _custom_vjp_bwd.rule>=0.12 "
        "_custom_vjp_bwd_accums.rule>=0.12 _custom_vjp_fwd.rule>=0.12",
        "interpreters.ad": "JVPTracer.primal",
        "interpreters.batching": "BatchTracer.batch_dim BatchTracer.val",
        "interpreters.partial_eval": "dce_jaxpr",
        "interpreters.pxla": "MeshComputation._executable MeshComputation._hlo "
        "MeshComputation.compile MeshExecutable._out_shardings "
        "MeshExecutable.create_cpp_call.aot_cache_miss MeshExecutable.xla_executable "
        "lower_sharding_computation.closed_jaxpr",
        "lax.control_flow.conditionals": "_switch_internal cond",
        "lax.control_flow.loops": "scan.length while_loop",
        "linear_util": "DebugInfo.arg_names DebugInfo.traced_for",
        "pjit": "_cpp_pjit.cache_miss.fun _infer_params _pjit_call_impl.call_impl_cache_miss "
        "_pjit_jvp _pjit_linearize _pjit_transpose_fancy jit_lower.jit_func jit_trace",
        "source_info_util": "NameStack.stack SourceInfo.name_stack",
        "stages": "Lowered._lowering Traced.lower",
        "xla_bridge": "_backend_lock _backends",
    },
    "runs": {
        "api": "_post_hook_state.get_global _post_hook_state.get_local "
        "_post_hook_state.set_global _post_hook_state.set_local config_ext.unset",
        "interpreters.pxla": "ExecuteReplicated.__call__ MeshExecutable.create_cpp_call "
        "MeshExecutable.unsafe_call",
    },
    "interrupts": {
        "core": "Token._buf",
        "interpreters.pxla": "ExecuteReplicated.__call__ ExecuteReplicated.has_host_callbacks "
        "MeshExecutable.unsafe_call",
        "pjit": "_get_fastpath_data.executable",
    },
    "watch": {
        "api": "linearize vjp",
        "core": "Jaxpr.replace Primitive.bind eval_jaxpr.jaxpr jaxpr_as_fun typeof",
        "flattree": "nones>=0.11 pack>=0.11",
        "interpreters.ad": "backward_pass",
        "interpreters.partial_eval": "trace_to_jaxpr_dynamic",
        "lax.control_flow.conditionals": "_switch_internal cond",
        "lax.control_flow.loops": "scan scan_p while_loop while_p",
        "lax.lax": "_reduction_jaxpr _variadic_reduction_jaxpr",
        "lib.mlir": "ir.InsertionPoint ir.RankedTensorType",
        "lib.mlir.dialects": "hlo.ConcatenateOp hlo.IfOp hlo.OptimizationBarrierOp hlo.ReduceOp "
        "hlo.add hlo.is_finite hlo.not_ hlo.or_ hlo.reshape hlo.return_",
        "linear_util": "wrap_init",
        "pjit": "_trace_for_jit",
        "sharding_impls": "UNSPECIFIED",
    },
    "exact": {
        "ad_checkpoint": "nothing_saveable remat_p",
        "ad_util": "Zero",
        "core": "Trace.process_call<0.11 Trace.process_custom_jvp_call "
        "Trace.process_custom_vjp_call Trace.process_primitive jaxpr_as_fun jaxprs_in_params "
        "replace_jaxpr_effects set_current_trace take_current_trace typeof",
        "interpreters.batching": "batch_jaxpr batch_jaxpr_axes fancy_primitive_batchers",
        "interpreters.partial_eval": "close_jaxpr custom_partial_eval_rules trace_to_jaxpr_dynamic",
        "lax.control_flow.conditionals": "cond_p",
        "lax.control_flow.loops": "scan_p while_p",
        "linear_util": "wrap_init",
        "pjit": "jit_p",
        "sharding_impls": "UNSPECIFIED",
        "util": "split_list weakref_lru_cache",
    },
    "observation": {
        "buffer_callback": "buffer_callback_p",
        "callback": "_FlatCallback.callback_func _FlatCallback.in_tree io_callback_impl.callback "
        "io_callback_p pure_callback_impl.callback pure_callback_p",
        "debugging": "_format_print_callback _make_flat_callback debug_callback_impl.callback "
        "debug_callback_p debug_print_p",
        "dispatch": "xla_primitive_callable.prim_fun.params",
        "interpreters.batching": "fancy_primitive_batchers",
        "interpreters.mlir": "LoweringRuleEntry.rule _lowerings _platform_specific_lowerings "
        "jaxpr_subcomp.eqn jaxpr_subcomp.jaxpr",
        "shard_map": "ShardMapTrace.process_primitive eager_rules",
    },
}
INSTALL = "Install JAX 0.10.0 to 0.12.0, or a newer jupyter_jaxcb."
_OFF = {
    "statuses": "statuses are off: recordings have host calls, but no calls that JAX or XLA "
    "removed",
    "runs": "runs are not counted, and blocks do not wait for programs with only pure callbacks",
    "interrupts": "interrupts are off: after Ctrl-C, host calls may still be made",
    "watch": "watching is off",
    "exact": "io callbacks are refused in vmapped branches and loops",
    "observation": "observation is off: JAX's own callbacks are not recorded",
}
_COMPARES = {">=": operator.ge, "<": operator.lt}


def module(name: str) -> Any:
    """Return a module of `jax._src`; None if it is gone, which turns its subjects off."""
    try:
        return importlib.import_module(f"jax._src.{name}")
    except ImportError:
        return None


def missing(subject: str) -> str:
    """Return the first private name of a subject that this JAX lacks, in full; "" if none."""
    return _missing[subject]


def why_off(subject: str) -> str:
    """Return a sentence that says why a subject is off, and what to do; "" if it is on."""
    name = missing(subject)
    return name and f"JAX {jax.__version__} has no {name}, so {_OFF[subject]}. {INSTALL}"


@functools.cache
def is_on(subject: str) -> bool:
    """Return whether JAX has all private names of a subject; if not, warn at the first use."""
    sentence = why_off(subject)
    if sentence:
        warnings.warn(sentence, stacklevel=3)
    return not sentence


def _first_missing(subject: str) -> str:
    for place, names in NAMES[subject].items():
        for entry in names.split():
            name, *versions = re.split("(>=|<)", entry)
            try:
                if not versions or _has_version(*versions):
                    _find(place, name)
            except AttributeError as error:
                return str(error)
    return ""


def _has_version(compares: str, version: str) -> bool:
    return _COMPARES[compares](jax.__version_info__, tuple(map(int, version.split("."))))


def _find(place: str, name: str) -> Any:
    """Return what has a private name; raise AttributeError with as much of it as is missing."""
    found, path = module(place), f"jax._src.{place}"
    for part in name.split("."):
        path = f"{path}.{part}"
        found = _member(found, part, path)
    return found


def _member(owner: Any, name: str, path: str) -> Any:
    """Return an attribute, or the code of an inner function; the owner of a field or variable."""
    if hasattr(owner, name):
        return getattr(owner, name)
    fields = (*getattr(owner, "__annotations__", ()), *getattr(owner, "__dataclass_fields__", ()))
    code = _code(owner.__init__ if isinstance(owner, type) else owner)
    if isinstance(code, CodeType):
        for inner in code.co_consts:
            if isinstance(inner, CodeType) and inner.co_name == name:
                return inner
        # What a class without fields stores is named by its `__init__`.
        fields = (*fields, *code.co_varnames, *code.co_freevars, *code.co_cellvars, *code.co_names)
    if name not in fields:
        raise AttributeError(path)
    return owner


@functools.cache
def code_of(place: str, name: str) -> CodeType:
    """Return the code of a function of JAX, by which its frames are recognized."""
    return _code(_find(place, name))


def _code(function: Any) -> Any:
    """Return the code of a function below its decorators; what has none is returned as it is."""
    function = inspect.unwrap(function)
    if isinstance(function, functools.partial):  # a transformation of `linear_util`
        function = function.args[0]
    return getattr(function, "__code__", function)


# When this is imported, so that no call of the user waits for it.
_missing = {subject: _first_missing(subject) for subject in NAMES}


def frames() -> Iterator[FrameType]:
    """Yield the frames of this thread, the innermost first."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


class Changes:
    """Changes of JAX that are reverted together, the last one first. Not thread-safe."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def make(self, change: Callable[[], object], undo: Callable[[], None]) -> None:
        """Make a change.

        Args:
            change: makes it.
            undo: reverts it; must be harmless if the change was not made or is already reverted.
        """
        self._undo.append(undo)
        change()

    def set(self, owner: Any, name: str, new: Any) -> None:
        """Set an attribute that `owner` has, until something else sets it or this is reverted."""
        old = getattr(owner, name)

        def undo() -> None:
            if getattr(owner, name) is new:
                setattr(owner, name, old)

        self.make(lambda: setattr(owner, name, new), undo)

    def put(self, table: dict, key: Any, new: Any) -> None:
        """Put an entry into a table, until something else replaces it or this is reverted."""
        was_there, old = key in table, table.get(key)

        def undo() -> None:
            if table.get(key) is not new:
                return
            if was_there:
                table[key] = old
            else:
                del table[key]

        self.make(lambda: table.update({key: new}), undo)

    def revert(self) -> None:
        """Revert all changes; if an interrupt cut this short, a second call reverts the rest."""
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
