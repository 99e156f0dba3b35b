"""Tell certain operations in loops and branches the step of the loop, and whether it counts.

When JAX binds a loop, the jaxpr of its body is complete. Here it gets one more input, the number
of the step, which each of the operations gets as an operand, however deep it is in inner loops,
branches and jitted functions. JAX then transforms the operand as any other: under `vmap` it has
axes, and a backward pass keeps it as a residual. In a branch the operand is whether the branch is
taken. It matters under `vmap`, where JAX computes all branches for all batch elements, and the
body of a loop for finished elements too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ._calls import Primitive
from ._masks import traced_like
from ._subjects import module

BRANCH = "branch"
# What is around an operation, from the outside: the lengths of loops, None for a length that is
# not known, and `BRANCH`.
Around = tuple[int | str | None, ...]
# Takes the parameters of an operation and what is around it. Returns the place of the operands, and
# the parameters with them. Around is None if no operand can reach the operation.
Add = Callable[[dict[str, Any], Around | None], tuple[int, dict[str, Any]]]

_core, _flattree = module("core"), module("flattree")  # which is there since JAX 0.11
_loops = module("lax.control_flow.loops")
# The jaxprs of the operations that an operand can be passed through.
_JAXPRS = {
    "jit": ("jaxpr",), "scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr"),
    "cond": ("branches",), "checkpoint": ("jaxpr",), "remat2": ("jaxpr",),
    "custom_jvp_call": ("call_jaxpr",), "custom_vjp_call": ("call_jaxpr",),
    "shard_map": ("jaxpr",), "custom_linear_solve": ("jaxprs",),
}  # fmt: skip
_ZEROS = np.int32(0), np.bool_(False)  # like a step, and like whether a branch is taken
_COUNTS = ("num_consts", "cond_nconsts", "body_nconsts")  # of inputs that come first
_BY_INPUT = {
    "linear": False, "donated_invars": False, "in_layouts": None, "prevent_cse": True,
    "in_shardings": getattr(module("sharding_impls"), "UNSPECIFIED", None),
    "in_specs": jax.sharding.PartitionSpec(),
}  # fmt: skip


class Numbering:
    """Numbers the loops around certain operations.

    Args:
        own: the operations.
        add: adds operands to one of them.
        mute: returns the parameters of one that does nothing.
    """

    def __init__(self, own: Collection[Primitive], add: Add, mute: Callable[[Any], Any]) -> None:
        self._own, self._add, self._mute = own, add, mute

    def of(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], int]:
        """Return operands and parameters of a loop or branch that `begins_loop` binds, numbered.

        The last number is how many results it has more, at their beginning.
        """
        if not self._is_in(params) or "branches_platforms" in params:
            return args, params, 0
        if any(_has_references(jaxpr) for jaxpr in _jaxprs(params)):
            self._leave(params)
            return args, params, 0
        if primitive is _loops.scan_p:
            return *self._scan(args, params), 0
        if primitive is _loops.while_p:
            return *self._while(args, **params), 1
        return *self._cond(args, params), 0

    def _scan(self, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[tuple, dict]:
        closed, length = params["jaxpr"], params["length"]
        numbered = _function(self._given(closed, (length,)))
        body = traced_like(
            lambda *args: numbered(args[-1], *args[:-1]), [*closed.in_avals, _aval(length)], closed
        )
        steps = np.arange(length, dtype=np.int32)[:: -1 if params["reverse"] else 1]
        return (*args, steps), _scan_params(params, body, arrays=1)

    def _while(
        self, args: tuple[Any, ...], cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int,
        body_jaxpr: Any,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:  # fmt: skip
        of_cond, init = args[:cond_nconsts], args[cond_nconsts + body_nconsts :]
        of_body = args[cond_nconsts : cond_nconsts + body_nconsts]
        asks = _function(self._given(cond_jaxpr, (None,)))
        # The predicate is true in the body, except for batch elements that are finished. With
        # effects it must not be evaluated twice.
        is_pure = not self._has_others(cond_jaxpr)
        silent = _function(self._given(cond_jaxpr, (), is_muted=True)) if is_pure else None
        runs = _function(self._given(body_jaxpr, (None, BRANCH) if is_pure else (None,)))

        def predicate(*args: Any) -> Any:
            consts, (step, *carry) = args[:cond_nconsts], args[cond_nconsts:]
            return asks(step, *consts, *carry)

        def body(*args: Any) -> Any:
            consts, args = args[:cond_nconsts], args[cond_nconsts:]
            others, (step, *carry) = args[:body_nconsts], args[body_nconsts:]
            going = silent(*consts, *carry) if silent else []
            return [step + 1, *runs(step, *going, *others, *carry)]

        constants, carried = cond_jaxpr.in_avals[:cond_nconsts], body_jaxpr.in_avals[body_nconsts:]
        of_loop = [_aval(None), *carried]
        of_both = [*constants, *body_jaxpr.in_avals[:body_nconsts]]
        return (*of_cond, *of_cond, *of_body, np.int32(0), *init), {
            "cond_nconsts": cond_nconsts,
            "cond_jaxpr": traced_like(predicate, [*constants, *of_loop], cond_jaxpr),
            "body_nconsts": cond_nconsts + body_nconsts,
            "body_jaxpr": traced_like(body, [*of_both, *of_loop], body_jaxpr),
        }

    def _cond(self, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[tuple, dict]:
        index = _core.typeof(args[0])

        def branch(number: int, closed: Any) -> Any:
            given = _function(self._given(closed, (BRANCH,)))

            def taken(index: Any, *args: Any) -> Any:
                return given(index == number, *args)

            return traced_like(taken, [index, *closed.in_avals], closed)

        branches = tuple(branch(n, closed) for n, closed in enumerate(params["branches"]))
        return (args[0], *args), params | {"branches": branches}

    def _given(self, jaxpr: Any, around: Around, is_muted: bool = False) -> Any:
        """Return a jaxpr that first takes the operands for what is around it."""
        if jaxpr is None:
            return None
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        operands = _variables(around)
        eqns = [self._with_operands(eqn, operands, around, is_muted) for eqn in inner.eqns]
        given = inner.replace(invars=[*operands, *inner.invars], eqns=eqns)
        return given if inner is jaxpr else jaxpr.replace(jaxpr=given)

    def _with_operands(
        self, eqn: Any, operands: Sequence[Any], around: Around, is_muted: bool
    ) -> Any:
        invars, params, count = [*eqn.invars], dict(eqn.params), len(operands)
        if eqn.primitive in self._own:
            if is_muted:
                return eqn.replace(params=self._mute(params))
            at, params = self._add(params, around)
            return eqn.replace(invars=[*invars[:at], *operands, *invars[at:]], params=params)
        if not self._is_in(params):
            return eqn
        name = eqn.primitive.name
        if name not in _JAXPRS or any(hasattr(effect, "input_index") for effect in eqn.effects):
            self._leave(params)
            return eqn
        for key in _JAXPRS[name]:
            value = params[key]
            if isinstance(value, tuple):
                each = [self._given(jaxpr, around, is_muted) for jaxpr in value]
                params[key] = type(value)(*each) if hasattr(value, "_fields") else tuple(each)
            else:
                params[key] = self._given(value, around, is_muted)
        places = [0]  # where the operands come, of the inputs
        if name == "cond":
            places = [1]
        elif name == "while":
            places = [0, params["cond_nconsts"]]
        elif name == "custom_linear_solve":
            lengths = params["const_lengths"]
            places = [sum(lengths[:n]) for n, jaxpr in enumerate(params["jaxprs"]) if jaxpr]
            pairs = zip(lengths, params["jaxprs"], strict=True)
            params["const_lengths"] = type(lengths)(*(n + count * bool(j) for n, j in pairs))
        for place in reversed(places):
            invars[place:place] = operands
        if name == "scan":
            params = _scan_params(params, params["jaxpr"], constants=count)
            return eqn.replace(invars=invars, params=params)
        for key in _COUNTS:
            if key in params:
                params[key] += count
        if "out_trees" in params:  # of a `custom_vjp`; which also say which inputs are residuals
            params["out_trees"] = _with_inputs(params["out_trees"], count)
        for key, value in _BY_INPUT.items():
            if isinstance(params.get(key), tuple):
                params[key] = (value,) * count + params[key]
        return eqn.replace(invars=invars, params=params)

    def _is_in(self, params: dict[str, Any]) -> bool:
        return any(
            eqn.primitive in self._own or self._is_in(eqn.params)
            for jaxpr in _jaxprs(params)
            for eqn in jaxpr.eqns
        )

    def _leave(self, params: dict[str, Any]) -> None:
        """Tell the operations that no operand reaches them."""
        for jaxpr in _jaxprs(params):
            for eqn in jaxpr.eqns:
                if eqn.primitive in self._own:
                    self._add(eqn.params, None)
                else:
                    self._leave(eqn.params)

    def _has_others(self, closed: Any) -> bool:
        """Return whether a jaxpr has other operations with effects."""
        for eqn in closed.eqns:
            inner = [*_jaxprs(eqn.params)]
            is_other = eqn.effects and not inner and eqn.primitive not in self._own
            if is_other or any(map(self._has_others, inner)):
                return True
        return False


def _jaxprs(params: dict[str, Any]) -> Iterator[Any]:
    """Yield the jaxprs in parameters, without their constants."""
    for value in params.values():
        for jaxpr in value if isinstance(value, tuple | list) else (value,):
            jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
            if isinstance(jaxpr, _core.Jaxpr):
                yield jaxpr


def _has_references(jaxpr: Any) -> bool:
    """Return whether a jaxpr changes inputs, which it knows by their number."""
    return any(hasattr(effect, "input_index") for effect in jaxpr.effects)


def _scan_params(
    params: dict[str, Any], jaxpr: Any, constants: int = 0, arrays: int = 0
) -> dict[str, Any]:
    """Return the parameters of a scan with more constants, and more arrays, in the end."""
    params = params | {"jaxpr": jaxpr}
    if "ft_in" in params:  # since 0.11
        consts, carry, xs = params["ft_in"].unpack()
        if constants:
            consts = _flattree.nones(len(consts) + constants)
        if arrays:
            xs = _flattree.nones(len(xs) + arrays)
        return params | {"ft_in": _flattree.pack((consts, carry, xs))}
    if "linear" in params:
        params["linear"] = (False,) * constants + params["linear"] + (False,) * arrays
    return params | {"num_consts": params["num_consts"] + constants}


def _with_inputs(out_trees: Callable[[], Any], count: int) -> Callable[[], Any]:
    def shifted() -> Any:
        out_tree, residuals, forwarded = out_trees()
        return out_tree, residuals, [n if n is None else n + count for n in forwarded]

    return shifted


def _aval(around: int | str | None) -> Any:
    return _core.typeof(_ZEROS[around == BRANCH])


def _variables(around: Around) -> list[Any]:
    zeros = [_ZEROS[each == BRANCH] for each in around]
    return jax.make_jaxpr(lambda *operands: operands)(*zeros).jaxpr.invars


def _function(closed: Any) -> Callable[..., Any]:
    return _core.jaxpr_as_fun(closed)
