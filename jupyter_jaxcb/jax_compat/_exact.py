"""Tell the calls in branches and loops of a vmapped program which batch elements reach them.

Under vmap, JAX runs every branch of a ``cond`` with a batched predicate for all batch elements, and
the body of a ``while`` until the last element is done. Here the text of a branch or body is
rewritten before JAX batches it: its predicate reaches each call as a mask, one more operand, which
`vmap` then batches like any other. Nothing else is batched here, and a program without such calls
is left to JAX as it is.
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
from jax.sharding import AxisType
from jax.tree_util import tree_structure

from ._axes import varying_axes
from ._calls import Primitive, jax_effect, shaped_array
from ._subjects import is_on, module
from ._watch import scan_operands

# Whether masks are for the calls of an equation, given the callback that it has.
Applies = Callable[[Any], bool]
# Adds a mask to an equation: takes the mask, its operands and its parameters; returns both.
AddMask = Callable[[Any, Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]
# Whether XLA may move its calls out of a loop, given the callback.
Moves = Callable[[Any], bool]
# Raises an error for an equation that no mask can reach, given its parameters and what is in the
# way; it returns if the calls are then those that JAX makes.
Refuse = Callable[[dict[str, Any], str], None]

_core, _lu = module("core"), module("linear_util")
_conditionals, _loops = (module(f"lax.control_flow.{name}") for name in ("conditionals", "loops"))
_partial_eval, _util = module("interpreters.partial_eval"), module("util")
_MASK = shaped_array((), np.dtype(bool))
_INDEX = shaped_array((), np.dtype(np.int32))
_masked: dict[Primitive, tuple[Applies, AddMask, Moves, Refuse]] = {}


def takes_masks(
    primitive: Primitive, applies: Applies, add: AddMask, moves: Moves, refuse: Refuse
) -> None:
    """Make the calls of a primitive only for the batch elements that reach them."""
    if not _masked:
        _install()
    _masked[primitive] = applies, add, moves, refuse


def _cached(function: Callable[..., Any]) -> Any:
    """Keep what a function of a jaxpr returns as long as the jaxpr."""
    return _util.weakref_lru_cache(function)


def _takes_mask(equation: Any) -> bool:
    masked = _masked.get(equation.primitive)
    return masked is not None and masked[0](equation.params["callback"])


@_cached
def _calls(jaxpr: Any) -> list[Any]:
    """Return the equations of an open jaxpr, and of those in it, that take masks."""
    return [
        call
        for equation in jaxpr.eqns
        for call in (
            [equation]
            if _takes_mask(equation)
            else [
                inner for part in _core.jaxprs_in_params(equation.params) for inner in _calls(part)
            ]
        )
    ]


def _calls_in(*closed: Any) -> bool:
    return any(_calls(each.jaxpr) for each in closed)


class _MaskTrace(_core.Trace):
    """Binds each equation as it is, but gives the mask to each call, however deep.

    No loop runs without the mask, because a loop that waits for a result of a call would not end.
    """

    def __init__(self, parent: Any, mask: Any, entered: Any, constant: Sequence[Any]) -> None:
        super().__init__()
        self.parent, self.mask, self.requires_low = parent, mask, False
        self.entered = entered
        self.constant = {id(x): x for x in constant}  # in the loop

    def process_primitive(self, primitive: Any, args: Any, params: Any, /) -> Any:
        with _core.set_current_trace(self.parent):
            is_constant = self.entered is not None and all(map(self.is_constant, args))
            if primitive in _masked:
                applies, add, moves, _ = _masked[primitive]
                callback = params["callback"]
                if not applies(callback):
                    return primitive.bind(*args, **params)
                is_constant = is_constant and moves(callback)
                args, params = add(self.entered if is_constant else self.mask, args, params)
                return self._noted(primitive.bind(*args, **params), is_constant)
            calls = [call for each in _core.jaxprs_in_params(params) for call in _calls(each)]
            if not calls and primitive is not _loops.while_p:
                effects = (each.effects for each in _core.jaxprs_in_params(params))
                is_constant = is_constant and primitive.name != "io_callback" and not any(effects)
                return self._noted(primitive.bind(*args, **params), is_constant)
            rule = _rules().get(primitive)
            if rule is not None:
                return rule(self, *args, **params)
            for call in calls:
                refuse = _masked[call.primitive][3]
                refuse(call.params, f"{primitive} in a branch or loop with a batched predicate")
            return primitive.bind(*args, **params)

    def is_constant(self, x: Any) -> bool:
        return not isinstance(x, Tracer) or id(x) in self.constant

    def rewritten(self, closed: Any, args: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the masks for a jaxpr with certain arguments, and what takes them before these."""
        if self.entered is None:
            return [self.mask], _with_masks(closed)
        constant = tuple(map(self.is_constant, args))
        more = (False,) * (len(closed.in_avals) - len(args))
        return [self.mask, self.entered], _with_masks_of_loop(closed, constant + more)

    def _noted(self, outs: Any, is_constant: bool) -> Any:
        if is_constant:
            self.constant.update((id(x), x) for x in jax.tree.leaves(outs))
        return outs

    def process_call(self, primitive: Any, fun: Any, args: Any, params: Any, /) -> Any:
        with _core.set_current_trace(self.parent):
            return primitive.bind(self.mask, *args, subfuns=(_with_mask(fun),), **params)

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, args: Any, /, **params: Any
    ) -> Any:
        def masked_jvp(
            mask: Any, *arrays: Any
        ) -> Any:  # its own tangent is in the middle, and void
            half = len(arrays) // 2
            return _under(mask, jvp.call_wrapped, *arrays[:half], *arrays[half + 1 :])

        with _core.set_current_trace(self.parent):
            subfuns = _with_mask(fun), _wrapped(masked_jvp, jvp)
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
        def masked_fwd(mask: Any, _: Any, *arrays: Any) -> Any:
            return _under(mask, fwd.call_wrapped, *arrays)

        def masked_bwd(mask: Any, *arrays: Any) -> Any:
            void = module("ad_util").Zero(_core.typeof(mask).to_tangent_aval())
            return [void, *_under(mask, bwd.call_wrapped, *arrays)]

        def masked_trees() -> Any:  # the mask is a residual: the first input, forwarded
            out_tree, residuals, forwarded = out_trees()
            with_mask = tree_structure([0] * (residuals.num_leaves + 1))
            return out_tree, with_mask, [0, *(f if f is None else f + 1 for f in forwarded)]

        subfuns = _with_mask(fun), _wrapped(masked_fwd, fwd), _wrapped(masked_bwd, bwd)
        with _core.set_current_trace(self.parent):
            return primitive.bind(
                self.mask, *args, subfuns=subfuns, out_trees=masked_trees,
                symbolic_zeros=symbolic_zeros,
            )  # fmt: skip


def _under(
    mask: Any,
    function: Callable[..., Any],
    *args: Any,
    entered: Any = None,
    constant: Sequence[Any] = (),
) -> Any:
    """Call a function of arrays with a mask for its calls.

    Args:
        mask: the mask.
        function: the function.
        *args: its arguments.
        entered: the mask of calls without effects whose operands do not change in the loop around
            them: XLA may move them out of it. None: there is no loop.
        constant: the arguments that do not change in that loop.
    """
    with _core.take_current_trace() as parent:
        with _core.set_current_trace(_MaskTrace(parent, mask, entered, constant)):
            return function(*args)


def _wrapped(function: Callable[..., Any], like: Any) -> Any:
    return _lu.wrap_init(function, debug_info=like.debug_info.with_unknown_names())


def _with_mask(fun: Any) -> Any:
    return _wrapped(lambda mask, *arrays: _under(mask, fun.call_wrapped, *arrays), fun)


def traced_like(function: Callable[..., Any], avals: Sequence[Any], like: Any) -> Any:
    jaxpr, _, consts = _partial_eval.trace_to_jaxpr_dynamic(_wrapped(function, like.jaxpr), avals)
    return jax.extend.core.ClosedJaxpr(jaxpr, consts)


@_cached
def _with_masks(closed: Any) -> Any:
    """Return a jaxpr that takes a mask first, for all calls in it."""

    def masked(mask: Any, *args: Any) -> Any:
        return _under(mask, _core.jaxpr_as_fun(closed), *args)

    return traced_like(masked, [_MASK, *closed.in_avals], closed)


@_cached
def _with_masks_of_loop(closed: Any, constant: tuple[bool, ...]) -> Any:
    """Return a jaxpr that takes two masks first, see `_under`; `constant`: of its arguments."""

    def masked(mask: Any, entered: Any, *args: Any) -> Any:
        fixed = [x for x, on in zip(args, constant, strict=True) if on]
        function = _core.jaxpr_as_fun(closed)
        return _under(mask, function, *args, entered=entered, constant=fixed)

    return traced_like(masked, [_MASK, _MASK, *closed.in_avals], closed)


@_cached
def _masked_predicate(closed: Any) -> Any:
    """Return a predicate that takes a mask first, and is false without it."""

    def both(mask: Any, *args: Any) -> Any:
        (going,) = _under(mask, _core.jaxpr_as_fun(closed), *args)
        return [going & lax.broadcast_in_dim(mask, going.shape, ())]

    return traced_like(both, [_MASK, *closed.in_avals], closed)


@_cached
def _masked_branch(closed: Any, number: int) -> Any:
    """Return a branch that takes the index of the branch to take first."""

    def branch(index: Any, *args: Any) -> Any:
        function = _core.jaxpr_as_fun(closed)
        return _under(index == number, function, *args) if _calls_in(closed) else function(*args)

    return traced_like(branch, [_INDEX, *closed.in_avals], closed)


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
    function = _core.jaxpr_as_fun(jaxpr)
    fixed = [x for x in consts if trace.is_constant(x)]

    def step(state: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = _under(
            trace.mask, function, *consts, *state, *slices, entered=trace.entered, constant=fixed
        )
        return outs[: len(carry)], outs[len(carry) :]

    how = {name: params[name] for name in ("length", "reverse", "unroll")}
    last, stacked = lax.scan(step, carry, xs, **how)
    return [*last, *stacked]


def _cond(trace: _MaskTrace, index: Any, *args: Any, branches: Any, **params: Any) -> Any:
    branches = tuple(map(_with_masks, branches))
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
    return _loops.while_p.bind(
        trace.mask, *consts, trace.mask, *others,
        cond_nconsts=cond_nconsts + 1, cond_jaxpr=_masked_predicate(cond_jaxpr),
        body_nconsts=body_nconsts + 1, body_jaxpr=_with_masks(body_jaxpr),
    )  # fmt: skip


def _remat(trace: _MaskTrace, *args: Any, jaxpr: Any, prevent_cse: Any, **params: Any) -> Any:
    if isinstance(prevent_cse, tuple):
        prevent_cse = (True, *prevent_cse)
    masked = _with_masks(_partial_eval.close_jaxpr(jaxpr)).jaxpr
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


# JAX refuses its io effects in a vmapped branch or loop. Calls that take masks are right there.


def _admitted(closed: Any) -> Any:
    """Return a jaxpr without io effects, if only calls that take masks have them."""
    refused = {jax_effect("io", False), jax_effect("io", True)} & closed.effects
    if not refused or _has_others(closed.jaxpr, refused):
        return closed
    return _core.replace_jaxpr_effects(closed, closed.effects - refused)


def _has_others(jaxpr: Any, effects: set[Any]) -> bool:
    for equation in jaxpr.eqns:
        if _takes_mask(equation) or effects.isdisjoint(equation.effects):
            continue
        inside = list(_core.jaxprs_in_params(equation.params))
        if not inside or any(_has_others(each, effects) for each in inside):
            return True
    return False


def _is_on_mesh(axis: Any, args: Sequence[Any]) -> bool:
    """Return whether types name axes of a mesh: in `jax.shard_map`, or explicit ones."""
    avals = list(map(_core.typeof, args))
    meshes = [getattr(getattr(aval, "sharding", None), "mesh", None) for aval in avals]
    return (
        getattr(axis, "explicit_mesh_axis", None) is not None
        or bool(varying_axes(avals))
        or any(AxisType.Explicit in (getattr(mesh, "axis_types", None) or ()) for mesh in meshes)
    )


def _left_to_jax(closed: Sequence[Any], name: str) -> None:
    """Refuse the calls of jaxprs that JAX's rule cannot make, with a batched predicate."""
    for call in [call for each in closed for call in _calls(each.jaxpr)]:
        _masked[call.primitive][3](call.params, f"a {name} with a batched predicate on a mesh")


def _install() -> None:
    """Put the two batching rules around JAX's."""
    if not is_on("exact"):
        return
    rules = module("interpreters.batching").fancy_primitive_batchers
    jaxs_cond, jaxs_while = rules[_conditionals.cond_p], rules[_loops.while_p]

    def batch_cond(axis: Any, args: Any, dims: Any, *, branches: Any, **params: Any) -> Any:
        __tracebackhide__ = True
        if _calls_in(*branches):
            is_batched = dims[0] is not None and "branches_platforms" not in params
            if is_batched and _is_on_mesh(axis, args):
                _left_to_jax(branches, "cond")
            elif is_batched:
                branches = tuple(_masked_branch(each, n) for n, each in enumerate(branches))
                args, dims = (args[0], *args), (dims[0], *dims)  # the index is an operand, too
            if not (is_batched and _is_on_mesh(axis, args)):
                branches = tuple(map(_admitted, branches))
        return jaxs_cond(axis, args, dims, branches=branches, **params)

    def batch_while(
        axis: Any,
        args: Any,
        dims: Any,
        *,
        cond_nconsts: int,
        cond_jaxpr: Any,
        body_nconsts: int,
        body_jaxpr: Any,
    ) -> Any:
        __tracebackhide__ = True
        if not _calls_in(cond_jaxpr, body_jaxpr):
            return jaxs_while(
                axis, args, dims, cond_nconsts=cond_nconsts, cond_jaxpr=cond_jaxpr,
                body_nconsts=body_nconsts, body_jaxpr=body_jaxpr,
            )  # fmt: skip
        # A predicate that has axes already is the carried mask of an earlier vmap: JAX batches it.
        carried = bool(cond_jaxpr.out_avals[0].shape)
        counts = cond_nconsts, body_nconsts
        if _is_on_mesh(axis, args) and _is_batched(axis, dims, counts, cond_jaxpr, body_jaxpr):
            _left_to_jax((cond_jaxpr, body_jaxpr), "while_loop")
            return jaxs_while(
                axis, args, dims, cond_nconsts=cond_nconsts, cond_jaxpr=cond_jaxpr,
                body_nconsts=body_nconsts, body_jaxpr=body_jaxpr,
            )  # fmt: skip
        if carried or not _is_batched(axis, dims, counts, cond_jaxpr, body_jaxpr):
            return jaxs_while(
                axis, args, dims, cond_nconsts=cond_nconsts, cond_jaxpr=_admitted(cond_jaxpr),
                body_nconsts=body_nconsts, body_jaxpr=_admitted(body_jaxpr),
            )  # fmt: skip
        consts, _, init = _util.split_list(args, list(counts))
        axes, _, init_axes = _util.split_list(dims, list(counts))
        batch = module("interpreters.batching").batch_jaxpr_axes
        # Every batch element evaluates the predicate, also where it has the same arguments.
        first, _ = batch(_masked_predicate(cond_jaxpr), axis, (0, *axes, *init_axes), (0,))
        (going,) = _core.jaxpr_as_fun(first)(np.ones(axis.size, bool), *consts, *init)
        predicate, body = _carrying(cond_jaxpr, body_jaxpr, *counts)
        count = sum(counts)
        outs, axes = jaxs_while(
            axis, (going, *args[:count], going, *init), (0, *dims[:count], 0, *init_axes),
            cond_nconsts=0, cond_jaxpr=predicate, body_nconsts=count + 1,
            body_jaxpr=_admitted(body),
        )  # fmt: skip
        return outs[1:], axes[1:]

    rules[_conditionals.cond_p], rules[_loops.while_p] = batch_cond, batch_while


@_cached
def _carrying(cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int) -> Any:
    """Return predicate and body of a loop that carries its predicate, evaluated once a step.

    ``while cond(x): x = body(x)`` becomes ``while going: x = body(x); going = going and cond(x)``.
    """
    carry = body_jaxpr.in_avals[body_nconsts:]

    def body(entered: Any, *args: Any) -> Any:
        counts = [cond_nconsts, body_nconsts]
        of_predicate, of_body, (going, *values) = _util.split_list(args, counts)
        step, goes_on = map(_core.jaxpr_as_fun, (body_jaxpr, cond_jaxpr))
        of_loop = {"entered": entered, "constant": [*of_body, *of_predicate]}
        new = _under(going, step, *of_body, *values, **of_loop)
        (still,) = _under(going, goes_on, *of_predicate, *new, **of_loop)
        return [going & still, *new]

    consts = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals[:body_nconsts]]
    return (
        traced_like(lambda going, *_: [going], [_MASK, *carry], cond_jaxpr),
        traced_like(body, [_MASK, *consts, _MASK, *carry], body_jaxpr),
    )


def _is_batched(
    axis: Any, dims: Sequence[Any], counts: Sequence[int], cond_jaxpr: Any, body_jaxpr: Any
) -> bool:
    """Return whether the predicate of a loop is batched: JAX's own search, and its cache."""
    batch = module("interpreters.batching").batch_jaxpr
    batched = [dim is not None for dim in dims]
    of_predicate, of_body, carry = _util.split_list(batched, list(counts))
    while True:
        _, after = batch(body_jaxpr, axis, of_body + carry, carry)
        if list(after) == carry:
            break
        carry = [on or new for on, new in zip(carry, after, strict=True)]
    return batch(cond_jaxpr, axis, of_predicate + carry, False)[1][0]
