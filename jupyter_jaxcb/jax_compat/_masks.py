"""Give a mask to the calls of a program, however deep: one more operand, that each of them takes.

The mask is that of a branch or loop, see `_exact`, or of a masked call whose derivative rule makes
other calls. JAX transforms it as any other operand; nothing is batched here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.tree_util import tree_structure

from ._calls import Primitive, current_trace, shaped_array
from ._subjects import is_on, module
from ._watch import scan_operands

# Whether masks are for the calls of an equation, given the callback that it has.
Applies = Callable[[Any], bool]
# Adds a mask to an equation: takes the mask, its operands and its parameters, and whether the mask
# is that of a derivative rule; returns operands and parameters.
AddMask = Callable[[Any, Sequence[Any], dict[str, Any], bool], tuple[Sequence[Any], dict[str, Any]]]
# Whether XLA may move its calls out of a loop, given the callback.
Moves = Callable[[Any], bool]
# Raises an error for an equation that no mask can reach, given its parameters and what is in the
# way; it returns if the calls are then those that JAX makes.
Refuse = Callable[[dict[str, Any], str], None]
# Replaces the results of a call where the mask is false: takes the mask and the results.
Fill = Callable[[Any, Any], Any]

_core, _lu = module("core"), module("linear_util")
_conditionals, _loops = (module(f"lax.control_flow.{name}") for name in ("conditionals", "loops"))
_partial_eval, _util = module("interpreters.partial_eval"), module("util")
MASK = shaped_array((), np.dtype(bool))
takers: dict[Primitive, tuple[Applies, AddMask, Moves, Refuse]] = {}


def kept_with_jaxpr(function: Callable[..., Any]) -> Any:
    """Keep what a function of a jaxpr returns as long as the jaxpr."""
    return _util.weakref_lru_cache(function)


def takes_mask(equation: Any) -> bool:
    masked = takers.get(equation.primitive)
    return masked is not None and masked[0](equation.params["callback"])


@kept_with_jaxpr
def calls_of(jaxpr: Any) -> list[Any]:
    """Return the equations of an open jaxpr, and of those in it, that take masks."""
    calls = []
    for equation in jaxpr.eqns:
        if takes_mask(equation):
            calls.append(equation)
        else:
            for inner in _core.jaxprs_in_params(equation.params):
                calls += calls_of(inner)
    return calls


def has_calls(*closed: Any) -> bool:
    return any(calls_of(each.jaxpr) for each in closed)


class _MaskTrace(_core.Trace):
    """Binds each equation as it is, but gives the mask to each call, however deep.

    No loop in a branch runs without the mask: one that waits for a result of a call would not end.
    In a derivative rule, results are filled in, and what takes no mask is called without.
    """

    def __init__(
        self, parent: Any, mask: Any, entered: Any, constant: Sequence[Any], fill: Fill | None
    ) -> None:
        super().__init__()
        self.parent_trace, self.mask, self.requires_low = parent, mask, False
        self.entered, self.fill = entered, fill
        self.constant = {id(x): x for x in constant}  # in the loop

    def process_primitive(self, primitive: Any, args: Any, params: Any, /) -> Any:
        with _core.set_current_trace(self.parent_trace):
            is_constant = self.entered is not None and all(map(self.is_constant, args))
            if primitive in takers:
                applies, add, moves, _ = takers[primitive]
                callback = params["callback"]
                if not applies(callback):
                    return primitive.bind(*args, **params)
                is_constant = is_constant and moves(callback)
                mask = self.entered if is_constant else self.mask
                args, params = add(mask, args, params, self.fill is not None)
                return self._noted(self.filled(primitive.bind(*args, **params)), is_constant)
            calls = [call for each in _core.jaxprs_in_params(params) for call in calls_of(each)]
            if not calls and (primitive is not _loops.while_p or self.fill is not None):
                effects = (each.effects for each in _core.jaxprs_in_params(params))
                is_constant = is_constant and primitive.name != "io_callback" and not any(effects)
                return self._noted(primitive.bind(*args, **params), is_constant)
            rule = _rules().get(primitive)
            if rule is not None:
                return rule(self, *args, **params)
            if self.fill is None:
                _refuse(calls, primitive)
            return primitive.bind(*args, **params)

    def filled(self, outs: Any) -> Any:
        return outs if self.fill is None else self.fill(self.mask, outs)

    def leave(self) -> None:
        """Hold no tracers: what JAX has traced inside may live on, and knows its parent trace."""
        self.mask = self.entered = None
        self.constant.clear()

    def is_constant(self, x: Any) -> bool:
        return not isinstance(x, Tracer) or id(x) in self.constant

    def rewritten(self, closed: Any, args: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the masks for a jaxpr with certain arguments, and what takes them before these."""
        if self.entered is None:
            return [self.mask], _with_masks(closed, self.fill)
        constant = tuple(map(self.is_constant, args))
        more = (False,) * (len(closed.in_avals) - len(args))
        return [self.mask, self.entered], _with_masks_of_loop(closed, constant + more)

    def _noted(self, outs: Any, is_constant: bool) -> Any:
        if is_constant:
            self.constant.update((id(x), x) for x in jax.tree.leaves(outs))
        return outs

    def process_call(self, primitive: Any, fun: Any, args: Any, params: Any, /) -> Any:
        with _core.set_current_trace(self.parent_trace):
            return primitive.bind(self.mask, *args, subfuns=(_with_mask(fun, self.fill),), **params)

    def process_shard_map(self, *args: Any, **params: Any) -> Any:
        with _core.set_current_trace(self.parent_trace):
            return self.parent_trace.process_shard_map(*args, **params)

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, args: Any, /, **params: Any
    ) -> Any:
        fill, masked = self.fill, functools.partial(under, fill=self.fill)

        def masked_jvp(mask: Any, *arrays: Any) -> Any:
            # Its own tangent is in the middle, and void.
            half = len(arrays) // 2
            return masked(mask, jvp.call_wrapped, *arrays[:half], *arrays[half + 1 :])

        with _core.set_current_trace(self.parent_trace):
            subfuns = _with_mask(fun, fill), _wrapped(masked_jvp, jvp)
            return primitive.bind(self.mask, *args, subfuns=subfuns, **params)

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: Any,
        fwd: Any,
        bwd: Any,
        args: Any,
        /,
        *,
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        fill, masked = self.fill, functools.partial(under, fill=self.fill)

        def masked_fwd(mask: Any, _: Any, *arrays: Any) -> Any:
            return masked(mask, fwd.call_wrapped, *arrays)

        def masked_bwd(mask: Any, *arrays: Any) -> Any:
            void = module("ad_util").Zero(_core.typeof(mask).to_tangent_aval())
            return [void, *masked(mask, bwd.call_wrapped, *arrays)]

        def masked_trees() -> Any:  # the mask is a residual: the first input, forwarded
            out_tree, residuals, forwarded = out_trees()
            with_mask = tree_structure([0] * (residuals.num_leaves + 1))
            return out_tree, with_mask, [0, *(f if f is None else f + 1 for f in forwarded)]

        subfuns = _with_mask(fun, fill), _wrapped(masked_fwd, fwd), _wrapped(masked_bwd, bwd)
        with _core.set_current_trace(self.parent_trace):
            return primitive.bind(
                self.mask, *args, subfuns=subfuns, out_trees=masked_trees,
                symbolic_zeros=symbolic_zeros,
            )  # fmt: skip


def under(
    mask: Any,
    function: Callable[..., Any],
    *args: Any,
    entered: Any = None,
    constant: Sequence[Any] = (),
    fill: Fill | None = None,
) -> Any:
    """Call a function of arrays with a mask for its calls.

    Args:
        mask: the mask.
        function: the function.
        *args: its arguments.
        entered: the mask of calls without effects whose operands do not change in the loop around
            them: XLA may move them out of it. None: there is no loop.
        constant: the arguments that do not change in that loop.
        fill: what the results of calls get where the mask is false. None: the mask is that of a
            branch or loop, and they are zero.
    """
    with _core.take_current_trace() as parent:
        trace = _MaskTrace(parent, mask, entered, constant, fill)
        try:
            with _core.set_current_trace(trace):
                return function(*args)
        finally:
            trace.leave()


def _wrapped(function: Callable[..., Any], like: Any) -> Any:
    return _lu.wrap_init(function, debug_info=like.debug_info.with_unknown_names())


def _with_mask(fun: Any, fill: Fill | None) -> Any:
    masked = functools.partial(under, fill=fill)
    return _wrapped(lambda mask, *arrays: masked(mask, fun.call_wrapped, *arrays), fun)


def in_rule(mask: Any, fill: Fill, rule: Callable[..., Any], *args: Any) -> Any:
    """Call a derivative rule with the mask of the call that it is for."""
    if not is_on("exact"):
        return rule(*args)
    return under(mask, rule, *args, fill=fill)


def mask_of_rule() -> Any:
    """Return the mask of the derivative rule in which the caller is; True outside of such rules."""
    trace = current_trace()
    return trace.mask if isinstance(trace, _MaskTrace) and trace.fill is not None else True


def traced_like(function: Callable[..., Any], avals: Sequence[Any], like: Any) -> Any:
    jaxpr, _, consts = _partial_eval.trace_to_jaxpr_dynamic(_wrapped(function, like.jaxpr), avals)
    return jax.extend.core.ClosedJaxpr(jaxpr, consts)


def function_of(closed: Any, fill: Fill | None = None) -> Callable[..., Any]:
    """Return the function of a jaxpr that runs with a mask, which a shard_map does not take."""
    if fill is None:
        for equation in closed.jaxpr.eqns:
            if equation.primitive.name == "shard_map":
                _refuse(calls_of(equation.params["jaxpr"]), "shard_map")
    return _core.jaxpr_as_fun(closed)


def _refuse(calls: Sequence[Any], primitive: Any) -> None:
    for call in calls:
        refuse = takers[call.primitive][3]
        refuse(call.params, f"{primitive} in a branch or loop with a batched predicate")


@kept_with_jaxpr
def _with_masks(closed: Any, fill: Fill | None) -> Any:
    """Return a jaxpr that takes a mask first, for all calls in it."""

    def masked(mask: Any, *args: Any) -> Any:
        return under(mask, function_of(closed, fill), *args, fill=fill)

    return traced_like(masked, [MASK, *closed.in_avals], closed)


@kept_with_jaxpr
def _with_masks_of_loop(closed: Any, constant: tuple[bool, ...]) -> Any:
    """Return a jaxpr that takes two masks first, see `under`; `constant`: of its arguments."""

    def masked(mask: Any, entered: Any, *args: Any) -> Any:
        fixed = [x for x, on in zip(args, constant, strict=True) if on]
        return under(mask, function_of(closed), *args, entered=entered, constant=fixed)

    return traced_like(masked, [MASK, MASK, *closed.in_avals], closed)


@kept_with_jaxpr
def masked_predicate(closed: Any, fill: Fill | None = None) -> Any:
    """Return a predicate that takes a mask first, and is false without it."""

    def both(mask: Any, *args: Any) -> Any:
        (going,) = under(mask, function_of(closed, fill), *args, fill=fill)
        return [going & lax.broadcast_in_dim(mask, going.shape, ())]

    return traced_like(both, [MASK, *closed.in_avals], closed)


def _jit(
    trace: _MaskTrace, *args: Any, jaxpr: Any, donated_invars: Any, in_shardings: Any,
    in_layouts: Any, **params: Any,
) -> Any:  # fmt: skip
    masks, jaxpr = trace.rewritten(jaxpr, args)
    unspecified, count = module("sharding_impls").UNSPECIFIED, len(masks)
    return module("pjit").jit_p.bind(
        *masks, *args, jaxpr=jaxpr, donated_invars=(False,) * count + donated_invars,
        in_shardings=(unspecified,) * count + in_shardings,
        in_layouts=(None,) * count + in_layouts, **params,
    )  # fmt: skip


def _scan(trace: _MaskTrace, *args: Any, jaxpr: Any, **params: Any) -> Any:
    consts, carry, xs = scan_operands(args, params)
    if "num_consts" in params:  # until 0.10
        masks, jaxpr = trace.rewritten(jaxpr, consts)
        params["num_consts"] += len(masks)
        return _loops.scan_p.bind(*masks, *args, jaxpr=jaxpr, **params)
    function = function_of(jaxpr, trace.fill)
    fixed = [x for x in consts if trace.is_constant(x)]

    def step(state: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = under(
            trace.mask, function, *consts, *state, *slices,
            entered=trace.entered, constant=fixed, fill=trace.fill,
        )  # fmt: skip
        return outs[: len(carry)], outs[len(carry) :]

    how = {name: params[name] for name in ("length", "reverse", "unroll")}
    last, stacked = lax.scan(step, carry, xs, **how)
    return [*last, *stacked]


def _cond(trace: _MaskTrace, index: Any, *args: Any, branches: Any, **params: Any) -> Any:
    branches = tuple(_with_masks(branch, trace.fill) for branch in branches)
    return _conditionals.cond_p.bind(index, trace.mask, *args, branches=branches, **params)


def _while(
    trace: _MaskTrace,
    *args: Any,
    cond_nconsts: int,
    cond_jaxpr: Any,
    body_nconsts: int,
    body_jaxpr: Any,
) -> Any:
    consts, others = _util.split_list(args, [cond_nconsts])
    outs = _loops.while_p.bind(
        trace.mask, *consts, trace.mask, *others,
        cond_nconsts=cond_nconsts + 1, cond_jaxpr=masked_predicate(cond_jaxpr, trace.fill),
        body_nconsts=body_nconsts + 1, body_jaxpr=_with_masks(body_jaxpr, trace.fill),
    )  # fmt: skip
    return trace.filled(outs)


def _remat(trace: _MaskTrace, *args: Any, jaxpr: Any, prevent_cse: Any, **params: Any) -> Any:
    if isinstance(prevent_cse, tuple):
        prevent_cse = (True, *prevent_cse)
    masked = _with_masks(_partial_eval.close_jaxpr(jaxpr), trace.fill).jaxpr
    remat = module("ad_checkpoint").remat_p
    return remat.bind(trace.mask, *args, jaxpr=masked, prevent_cse=prevent_cse, **params)


@functools.cache
def _rules() -> dict[Any, Callable[..., Any]]:
    """Return what gives the mask to the jaxprs of an equation, by primitive."""
    return {
        module("pjit").jit_p: _jit,
        _loops.scan_p: _scan,
        _conditionals.cond_p: _cond,
        _loops.while_p: _while,
        module("ad_checkpoint").remat_p: _remat,
    }
