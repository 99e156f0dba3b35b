"""JAX's rules for the primitives of all flavors, written once; a flavor says where it differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ... import jax_compat
from ...recording import VmapLevel, active
from .. import elision
from ..call import (
    ArrayNames,
    HostCallback,
    aligned,
    how_to_differentiate,
    how_to_transpose,
    names_operands,
    number_to_array,
    to_aval,
)
from ..dispatch import Build, CallPlan, crossing
from ..errors import HostCallError
from ..lowering import eager_fact, lower_host_call
from ..options import Options
from ..trace import EAGER, left_out
from ._bound_call import BoundCall
from ._eager import (
    can_call_directly,
    check_numbers,
    device_of,
    raise_runtime_error,
    to_host,
    without_call,
)
from ._vmap import batch_host_call, passed, results_like


class KeptEffect(jax_compat.Effect):
    """Keeps calls with side effects when a loop or checkpoint around them is differentiated."""

    def __str__(self) -> str:
        return "Kept"


KEPT = KeptEffect()
jax_compat.keep_under_partial_evaluation(KeptEffect)


class Flavor:
    """A flavor: its primitive, and the rules of JAX for it, in JAX's order.

    As they stand here, JAX and XLA may elide the calls, and only a capability has a derivative.

    Attributes:
        name: that of its primitive: ``jaxcb_<name>_callback``.
        primitive: the primitive, with the static parameters `callback` (a `HostCallback`),
            `result_avals`, `levels` (the vmaps around it) and those of `bind`.
        fail: raises the user's exception from an eager call.
        fresh: whether JAX may keep the arrays that an eager crossing returns; else they are copied.
        by_value: whether arguments that are not arrays are compared by value, as `jax.jit` does.
        at_device: whether the lowering needs to know the devices.
        in_loops: whether a differentiated loop makes a call in each step, also if it is the same.
        partial_eval: JAX's rule for `jax.checkpoint`; None: JAX's own.
        finite: whether an error suggests finite differences.
        takes_masks: whether a mask can leave out calls.
        is_exact: whether a call that a batch element does not reach is an error, if no mask can
            leave it out.
    """

    name: str
    fail: Callable[[Any], Any] = staticmethod(raise_runtime_error)
    fresh = False
    by_value = True
    at_device = False
    in_loops = True
    partial_eval: Callable[..., Any] | None = None
    finite = False
    takes_masks = True
    is_exact = False

    def __init__(self) -> None:
        self.primitive = primitive = jax_compat.Primitive(f"jaxcb_{self.name}_callback")
        primitive.multiple_results = True
        primitive.def_effectful_abstract_eval(self.abstract_eval)
        primitive.def_impl(self.impl)
        jax_compat.ad.primitive_jvps[primitive] = self.jvp
        jax_compat.ad.primitive_transposes[primitive] = self.transpose
        jax_compat.register_batching(primitive, self.batch)
        if self.partial_eval is not None:
            jax_compat.partial_eval_jaxpr_custom_rules[primitive] = self.partial_eval
        jax_compat.save_in_checkpoints(
            primitive, self.refuse_checkpoint, lambda callback: not callback.options.rematerialize
        )
        if self.in_loops:
            jax_compat.stay_in_loops(primitive)
        if self.takes_masks:
            jax_compat.takes_masks(
                primitive,
                self.applies_mask,
                self.add_mask,
                lambda callback: not self.effects(callback.options),
                self.refuse_mask,
            )
        if self.at_device:
            jax_compat.requires_devices_during_lowering(primitive)
        # cacheable=False: with one cached lowering XLA would deduplicate equal calls that JAX's own
        # callbacks keep, so instrumenting a program would change its number of calls.
        jax_compat.mlir.register_lowering(primitive, self.lower, cacheable=False)

    def effects(self, options: Options) -> set[jax_compat.Effect]:
        """Return the effects for which JAX keeps a call; with one, XLA keeps it too."""
        return set()

    def order(self, options: Options) -> jax_compat.Effect | None:
        """Return the effect whose token orders the calls; None if none does."""
        return None

    def wait(self, options: Options) -> None:
        """Wait for the calls of programs that come before an eager call."""
        order = self.order(options)
        if order is not None:
            jax_compat.wait_for_ordered(order)

    def build(self, *, is_eager: bool, **params: Any) -> Build:
        """Return what builds the crossings of a bind with certain parameters."""
        return crossing

    def device(self, ctx: Any, **params: Any) -> int | None:
        """Return the index in the program of the device to call from; None: the options say it."""
        return None

    def abstract_eval(
        self, *avals: Any, callback: HostCallback, result_avals: tuple[Any, ...], **params: Any
    ) -> tuple[Sequence[Any], set[jax_compat.Effect]]:
        """Return the types of the results, and the effects."""
        __tracebackhide__ = True
        return results_like(callback, avals, result_avals), self.effects(callback.options)

    def impl(self, *args: Any, callback: HostCallback, result_avals: Any, **params: Any) -> Any:
        """Evaluate eagerly; there is no call for empty results, as in compiled programs."""
        if not any(aval.size for aval in result_avals) and not self.effects(callback.options):
            return without_call(callback, args, result_avals, params["levels"])
        return self.call(*args, callback=callback, result_avals=result_avals, **params)

    def call(
        self,
        *args: Any,
        callback: HostCallback,
        result_avals: tuple[Any, ...],
        levels: tuple[VmapLevel, ...],
        **params: Any,
    ) -> list[Any]:
        """Make an eager call.

        The host function is called directly, on the calling thread: nothing is compiled or cached,
        and the traceback is the user's own. Arrays on several devices take the compiled path.
        """
        __tracebackhide__ = True
        if callback.options.sharding is not None or not can_call_directly(args, result_avals):
            params |= {"callback": callback, "result_avals": result_avals, "levels": levels}
            return jax_compat.apply_primitive(self.primitive, *args, **params)
        elision.executed(callback.bind)
        self.wait(callback.options)
        operands = [to_host(x) for x in args]
        avals, results = tuple(map(to_aval, operands)), tuple(map(to_aval, result_avals))
        recorder = active()
        # Without a recorder the fact is short-lived, and only an `AddedName` would be read.
        is_named = recorder is not None or names_operands(callback.host.current)
        names = ArrayNames.of(callback) if is_named else None
        marks = callback.facts(eager=True)
        fact = eager_fact(callback.bind, avals, results, levels, names=names, marks=marks)
        if levels and fact.is_empty:
            if recorder is not None:  # there is no host call to record
                recorder.lowered(fact)
            empty = [np.zeros(aval.shape, aval.dtype) for aval in result_avals]
            return [jax.device_put(array, device_of(args)) for array in empty]
        dtypes = [operand.dtype for operand in operands], [aval.dtype for aval in result_avals]
        cross = self.build(is_eager=True, **params)(CallPlan(callback, fact, *dtypes))
        arrays, failed = (), None
        try:
            arrays = cross(*operands)
        except HostCallError as error:
            failed = error
        if failed is not None:  # outside of the except block, to raise without a __context__
            self.fail(failed)
        check_numbers(callback.bind.site.flavor, arrays)
        device = device_of(args) if arrays else None
        if not self.fresh:
            # The host function may keep writing into the array that it returned.
            arrays = tuple(aligned(np.array(array)) for array in arrays)
        return [jax.device_put(array, device) for array in arrays]

    def jvp(self, primals: Any, tangents: Any, *, callback: HostCallback, **params: Any) -> Any:
        """Differentiate: by the rules of a capability."""
        __tracebackhide__ = True
        for row in callback.options.capabilities:
            if row.jvp is not None and callback.host.derivative is not None:
                arrays = [list(map(number_to_array, each)) for each in (primals, tangents)]
                return row.jvp(self._bound_call(callback, **params), *arrays)
        raise self.no_jvp(callback)

    def transpose(self, cotangents: Any, *args: Any, callback: HostCallback, **params: Any) -> Any:
        """Transpose: by the rules of a capability."""
        __tracebackhide__ = True
        for row in callback.options.capabilities:
            if row.transpose is not None:
                arrays = [list(map(number_to_array, each)) for each in (cotangents, args)]
                return row.transpose(self._bound_call(callback, **params), *arrays)
        raise self.no_transpose(callback)

    def _bound_call(
        self, callback: HostCallback, *, result_avals: Any, levels: Any, **params: Any
    ) -> BoundCall:
        return BoundCall(self.primitive, callback, result_avals, levels, params)

    def no_jvp(self, callback: HostCallback) -> Exception:
        """Return the error of a callback without a derivative."""
        return ValueError(
            f"cannot differentiate {callback}: JAX cannot see inside a host function. "
            f"{self.name.capitalize()} callbacks do not support JVP. "
            f"{how_to_differentiate(callback.host, finite=self.finite)}"
        )

    def no_transpose(self, callback: HostCallback) -> Exception:
        """Return the error of a callback without a transpose."""
        return ValueError(
            f"cannot transpose {callback}: JAX cannot see inside a host function. "
            f"{self.name.capitalize()} callbacks do not support transpose. "
            f"{how_to_transpose(callback.host, callback.leading)}"
        )

    def refuse_checkpoint(self, params: dict[str, Any]) -> None:
        """Raise NotImplementedError for a call that must not be made again, unless it is saved."""
        __tracebackhide__ = True
        callback = params["callback"]
        if KEPT not in self.effects(callback.options) or not callback.options.rematerialize:
            return
        advice = "Pass rematerialize=False to save its results, or call it outside"
        if callback.options.ordered:
            advice = "Drop ordered=True and p" + advice[1:]
        raise NotImplementedError(
            f"cannot differentiate a jax.checkpoint with {callback}: Effects not supported in "
            "partial-eval of `checkpoint`, as the backward pass would call it again. "
            f"{advice} of the checkpoint."
        )

    def batch(self, args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> Any:
        """Batch, as ``vmap_method=`` says."""
        __tracebackhide__ = True
        return batch_host_call(
            self.primitive, args, dims, method=callback.options.vmap_method, callback=callback,
            **params,
        )  # fmt: skip

    def applies_mask(self, callback: HostCallback) -> bool:
        """Return whether only the batch elements that reach a call make it.

        Those of the drop-ins are made as often as JAX's.
        """
        return not callback.options.drop_in

    def add_mask(
        self, mask: Any, args: Sequence[Any], params: dict[str, Any], of_rule: bool
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Add the mask of a branch or loop around a call, its last operand from then on.

        Or that of the masked call whose derivative rule makes this one; the drop-ins do not take
        it.
        """
        __tracebackhide__ = True
        callback, options = params["callback"], params["callback"].options
        if of_rule and options.drop_in:
            return args, params
        if options.flavor == "io" and options.ordered and not of_rule:
            self.refuse_mask(params, "a branch or loop with a batched predicate")
        if options.masked:
            args, levels = (*args[:-1], args[-1] & mask), params["levels"]
        else:
            levels = tuple(level.with_operand(False) for level in params["levels"])
            for level in levels:  # of vmaps inside the branch or loop, which do not map over it
                mask = passed(mask, level.vmap_method.unbatched, level.size)
            args = (*args, mask)
        options = options.with_mask_of_rule if of_rule else options.with_mask_of_text
        callback = dataclasses.replace(callback, options=options)
        return args, {**params, "callback": callback, "levels": levels}

    def refuse_mask(self, params: dict[str, Any], where: str) -> None:
        """Raise NotImplementedError for a call that no mask can reach, if it must be exact."""
        __tracebackhide__ = True
        callback = params["callback"]
        if not self.is_exact:
            return
        why = "batch elements would make it that do not reach it"
        if callback.options.ordered:
            why = "Ordered IO effects not supported in vmap, as batch elements have no order"
        raise NotImplementedError(
            f"cannot vmap {callback} in {where}: {why}. Loop over the batch elements with "
            "jax.lax.map."
        )

    def lower(
        self,
        ctx: Any,
        *operands: Any,
        callback: HostCallback,
        levels: Any,
        result_avals: Any,
        **params: Any,
    ) -> Sequence[Any]:
        """Emit the custom call through which XLA calls Python."""
        __tracebackhide__ = True
        options = callback.options
        return lower_host_call(
            ctx,
            *operands,
            callback=callback,
            levels=levels,
            has_side_effect=bool(self.effects(options)),
            ordered=self.order(options),
            device=self.device(ctx, **params),
            build=self.build(is_eager=False, **params),
        )

    def disabled(self, name: str, arrays: Sequence[Any], avals: Any) -> Sequence[Any]:
        """Return the results of a call in a block where callbacks are off."""
        return left_out(name, avals)


EAGER.add(Flavor.call.__code__)


class Ordered(Flavor):
    """A flavor whose callbacks have JAX's own effect of that name, and its order of tokens.

    JAX's effect objects are registered for loops, remat, custom derivatives and partial evaluation,
    and our ordered calls keep one order with JAX's.
    """

    def effects(self, options: Options) -> set[jax_compat.Effect]:
        """Return JAX's effect, ordered or not."""
        return {jax_compat.jax_effect(options.flavor, options.ordered)}

    def order(self, options: Options) -> jax_compat.Effect | None:
        """Return JAX's ordered effect, if it is to be ordered."""
        return jax_compat.jax_effect(options.flavor, True) if options.ordered else None
