"""Derivative rules of registered callbacks, as thin wrappers of jax.custom_jvp and custom_vjp."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.custom_derivatives import CustomVJPPrimal
from jax.tree_util import tree_leaves, tree_map

from ... import jax_compat
from ...stack.call import given_name, is_array, number_to_array, text_of
from ...stack.errors import add_note

_Rule = Callable[..., Any]
_OF_JAX = inspect.getfile(jax.custom_jvp)  # where JAX checks what rules return


class Gate(NamedTuple):
    """Makes rules of functions whose first argument is a mask from rules without it."""

    jvp: Callable[[_Rule], _Rule]
    vjp: Callable[[_Rule, _Rule, Sequence[int]], tuple[_Rule, _Rule]]  # and the nondiff_argnums


def with_rule(
    primal: Callable[..., Any],
    name: str,
    rules: Sequence[Any],
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
    *,
    gate: Gate | None = None,
) -> Callable[..., Any]:
    """Return `primal` with the derivative rule of a user.

    Not all of JAX's errors about a rule say whose it is: those raised by a call get a note. An
    argument that is not an array is a TypeError that helps.

    Args:
        primal: the callback without a rule.
        name: its name.
        rules: one, as for ``jax.custom_jvp(primal).defjvp``, or two, as for
            ``jax.custom_vjp(primal).defvjp``.
        nondiff_argnums: as for JAX.
        symbolic_zeros: as for JAX.
        gate: what the first argument of `primal` does to the rules. None: it is the user's.
    """
    __tracebackhide__ = True
    kind = "jvp" if len(rules) == 1 else "vjp"
    for rule in rules:
        if not callable(rule):
            raise TypeError(
                f"cannot use {text_of(rule)} as a derivative rule of {name}: it is not a "
                f"function. Call {name}.def{kind} as you would jax.custom_{kind}'s."
            )
    if kind == "jvp":
        custom: Any = jax.custom_jvp
        of_arrays = [jvp_of_arrays(*rules)]
        of_arrays = of_arrays if gate is None else [gate.jvp(*of_arrays)]
    else:
        custom = jax.custom_vjp
        forward, backward = rules
        of_arrays = _vjp_of_arrays(forward, backward, nondiff_argnums)
        of_arrays = of_arrays if gate is None else gate.vjp(*of_arrays, nondiff_argnums)
    first = 0 if gate is None else 1
    places = tuple(n + first for n in nondiff_argnums)

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        made = custom(function, nondiff_argnums=places)
        getattr(made, f"def{kind}")(*of_arrays, symbolic_zeros=symbolic_zeros)
        return made

    shared = define(primal)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            bound = inspect.signature(primal).bind(*args, **kwargs)
            bound.apply_defaults()
            positional = bound.args
        except (TypeError, ValueError):  # they do not fit, or it has no signature
            positional = args
        for n, arg in enumerate(positional):
            if n not in places and not all(map(is_array, tree_leaves(arg))):
                raise TypeError(
                    f"cannot call {name} with {arg!r} as argument {n - first}: it is not an array, "
                    f"and {name} has a derivative rule. Define the rule with nondiff_argnums="
                    f"({n - first},); it then gets this argument first."
                )
        args, kwargs = jax_compat.vary_together((args, kwargs))
        # The custom_jvp and custom_vjp that will replace the present ones trace a function once for
        # all its calls, which would have the call site of the first: each gets a function.
        options = ("jax_custom_jvp3", "jax_custom_vjp3")
        if any(getattr(jax.config, option, False) for option in options):
            made = define(functools.wraps(primal)(functools.partial(primal)))
        else:
            made = shared
        try:
            return made(*args, **kwargs)
        except (TypeError, ValueError) as error:
            innermost = error.__traceback__
            while innermost is not None and innermost.tb_next is not None:
                innermost = innermost.tb_next
            if innermost and innermost.tb_frame.f_code.co_filename == _OF_JAX:
                names = " and ".join(given_name(rule) or text_of(rule) for rule in rules)
                add_note(error, f"raised for the derivative of {name}, whose rule is {names}")
                # JAX's frames say nothing about the rule.
                raise error.with_traceback(None) from error.__cause__
            raise

    return call


def jvp_of_arrays(rule: _Rule) -> _Rule:
    """Return a forward-mode rule that passes Python numbers on as arrays."""

    @functools.wraps(rule)
    def of_arrays(*args: Any) -> Any:
        *fixed, primals, tangents = args
        return rule(*fixed, *tree_map(number_to_array, (primals, tangents)))

    return of_arrays


def _vjp_of_arrays(
    forward: _Rule, backward: _Rule, nondiff_argnums: Sequence[int]
) -> tuple[_Rule, _Rule]:
    """As `jvp_of_arrays`, for both functions of a reverse-mode rule."""

    def array(x: Any) -> Any:
        if isinstance(x, CustomVJPPrimal):
            return dataclasses.replace(x, value=number_to_array(x.value))
        return number_to_array(x)

    def arrays(tree: Any) -> Any:
        return tree_map(array, tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))

    @functools.wraps(forward)
    def forward_of_arrays(*args: Any) -> Any:
        return forward(*(x if n in nondiff_argnums else arrays(x) for n, x in enumerate(args)))

    @functools.wraps(backward)
    def backward_of_arrays(*args: Any) -> Any:
        return backward(*args[:-1], arrays(args[-1]))

    return forward_of_arrays, backward_of_arrays
