"""Tell the calls in branches and loops of a vmapped program which batch elements reach them.

Under vmap, JAX runs every branch of a ``cond`` with a batched predicate for all batch elements, and
the body of a ``while`` until the last element is done. Here the text of a branch or body is
rewritten before JAX batches it: its predicate reaches each call as a mask, see `_masks`. Nothing
else is batched here, and a program without such calls is left to JAX as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import AxisType

from ._axes import varying_axes
from ._calls import Primitive, jax_effect, shaped_array
from ._masks import (
    MASK,
    AddMask,
    Applies,
    Moves,
    Refuse,
    calls_of,
    function_of,
    has_calls,
    kept_with_jaxpr,
    masked_predicate,
    takers,
    takes_mask,
    traced_like,
    under,
)
from ._subjects import is_on, module

_core, _util = module("core"), module("util")
_conditionals, _loops = (module(f"lax.control_flow.{name}") for name in ("conditionals", "loops"))
_INDEX = shaped_array((), np.dtype(np.int32))


def takes_masks(
    primitive: Primitive, applies: Applies, add: AddMask, moves: Moves, refuse: Refuse
) -> None:
    """Make the calls of a primitive only for the batch elements that reach them."""
    if not takers:
        _install()
    takers[primitive] = applies, add, moves, refuse


@kept_with_jaxpr
def _masked_branch(closed: Any, number: int) -> Any:
    """Return a branch that takes the index of the branch to take first."""

    def branch(index: Any, *args: Any) -> Any:
        function = function_of(closed)
        return under(index == number, function, *args) if has_calls(closed) else function(*args)

    return traced_like(branch, [_INDEX, *closed.in_avals], closed)


# JAX refuses its io effects in a vmapped branch or loop. Calls that take masks are right there.


def _admitted(closed: Any) -> Any:
    """Return a jaxpr without io effects, if only calls that take masks have them."""
    refused = {jax_effect("io", False), jax_effect("io", True)} & closed.effects
    if not refused or _has_others(closed.jaxpr, refused):
        return closed
    return _core.replace_jaxpr_effects(closed, closed.effects - refused)


def _has_others(jaxpr: Any, effects: set[Any]) -> bool:
    for equation in jaxpr.eqns:
        if takes_mask(equation) or effects.isdisjoint(equation.effects):
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
    for call in [call for each in closed for call in calls_of(each.jaxpr)]:
        takers[call.primitive][3](call.params, f"a {name} with a batched predicate on a mesh")


def _install() -> None:
    """Put the two batching rules around JAX's."""
    if not is_on("exact"):
        return
    rules = module("interpreters.batching").fancy_primitive_batchers
    jaxs_cond, jaxs_while = rules[_conditionals.cond_p], rules[_loops.while_p]

    def batch_cond(axis: Any, args: Any, dims: Any, *, branches: Any, **params: Any) -> Any:
        __tracebackhide__ = True
        if has_calls(*branches):
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
        if not has_calls(cond_jaxpr, body_jaxpr):
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
        first, _ = batch(masked_predicate(cond_jaxpr), axis, (0, *axes, *init_axes), (0,))
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


@kept_with_jaxpr
def _carrying(cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int) -> Any:
    """Return predicate and body of a loop that carries its predicate, evaluated once a step.

    ``while cond(x): x = body(x)`` becomes ``while going: x = body(x); going = going and cond(x)``.
    """
    carry = body_jaxpr.in_avals[body_nconsts:]

    def body(entered: Any, *args: Any) -> Any:
        counts = [cond_nconsts, body_nconsts]
        of_predicate, of_body, (going, *values) = _util.split_list(args, counts)
        step, goes_on = map(function_of, (body_jaxpr, cond_jaxpr))
        of_loop = {"entered": entered, "constant": [*of_body, *of_predicate]}
        new = under(going, step, *of_body, *values, **of_loop)
        (still,) = under(going, goes_on, *of_predicate, *new, **of_loop)
        return [going & still, *new]

    consts = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals[:body_nconsts]]
    return (
        traced_like(lambda going, *_: [going], [MASK, *carry], cond_jaxpr),
        traced_like(body, [MASK, *consts, MASK, *carry], body_jaxpr),
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
