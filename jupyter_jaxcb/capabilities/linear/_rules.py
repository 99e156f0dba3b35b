"""The derivatives of linear callbacks, as rules of JAX for the primitive of their flavor.

A call is linear in some of its operands, the vectors: their tangents take their places, and their
cotangents come from a call of the transpose. The derivative by the other operands is the user's: a
residual, or a rule by ``defjvp``. It is that of one batch element, so it runs below the vmaps that
the call has accumulated, mapped by `jax.vmap` again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ... import jax_compat
from ...recording import AxisKind, VmapLevel
from ...stack.call import HostCallback, is_array, to_aval
from ...stack.errors import add_note
from ...stack.flavors import anew, bind_again
from ...stack.options import Decides, capability
from ._linear import Arguments, Linear, check_takes
from ._masks import applied, stood_in
from ._transposed import is_inexact, transposed

_Zero = jax_compat.ad.Zero
_FLOAT0 = jax.dtypes.float0
_SHARED = AxisKind.UNBATCHED, AxisKind.SIZE1  # by all batch elements
_Flat = Callable[[Sequence[Any]], list[Any]]  # of arrays, returns arrays


class Bound(NamedTuple):
    """One bind of a linear callback, as the rules of JAX get it.

    Attributes:
        primitive: the primitive of its flavor.
        callback: its static parameter.
        result_avals: its results, below the vmaps.
        levels: the vmaps around it.
        params: further static parameters of the primitive.
    """

    primitive: jax_compat.Primitive
    callback: HostCallback
    result_avals: Sequence[Any]
    levels: Sequence[VmapLevel]
    params: dict[str, Any]

    @property
    def linear(self) -> Linear:
        """What is known of its host function."""
        return self.callback.host.derivative

    @property
    def axes(self) -> list[Sequence[AxisKind]]:
        """What each vmap around it did to each operand."""
        return [level.axes for level in self.levels]

    def result(self, flat: Sequence[Any]) -> Any:
        """Return a result, in its structure."""
        assert self.callback.out_tree is not None
        return tree_unflatten(self.callback.out_tree, flat)

    def call(self, linear: Linear, arguments: Arguments, vectors: Any, like: Any) -> Any:
        """Bind a call for one batch element.

        Args:
            linear: its function, or the transpose of that.
            arguments: its arguments, of which the vectors are replaced.
            vectors: what replaces them.
            like: the avals of its result.
        """
        __tracebackhide__ = True
        args, kwargs = linear.call(arguments.others, vectors)
        leaves, tree = tree_flatten(like)
        return bind_again(
            self.primitive, self.callback, linear.host, (leaves, tree), args, kwargs,
            linear.options, behind=arguments.behind, **self.params,
        )  # fmt: skip


def jvp(
    primitive: jax_compat.Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return results and tangents: the tangents of linear arguments take their places."""
    __tracebackhide__ = True
    bound = _bound(primitive, **params)
    callback, places = bound.callback, bound.linear.places(bound.callback)
    callback.bind.in_rule = True  # from here on, its value may not be needed
    results = primitive.bind(*primals, **params)
    moving = {n: dot for n, dot in enumerate(tangents) if type(dot) is not _Zero}
    if {*moving} <= {*places}:
        operands = [
            moving.get(n, jnp.zeros_like(x)) if n in places else x for n, x in enumerate(primals)
        ]
        again = {**params, "callback": dataclasses.replace(callback, bind=anew(callback))}
        dots = primitive.bind(*jax_compat.vary_together(operands), **again)
    else:
        dots = _by_all(bound, primals, moving, results)
    return results, [
        dot if is_inexact(y) else _Zero(jax.typeof(y).to_tangent_aval())
        for y, dot in zip(results, dots, strict=True)
    ]


def transpose(
    primitive: jax_compat.Primitive, cotangents: Sequence[Any], *operands: Any, **params: Any
) -> list[Any]:
    """Return the cotangents of the linear arguments that are unknown, by the transpose."""
    __tracebackhide__ = True
    bound = _bound(primitive, **params)
    places = bound.linear.places(bound.callback)
    avals = [x.aval if jax_compat.ad.is_undefined_primal(x) else jax.typeof(x) for x in operands]
    unknown = [n for n, x in enumerate(operands) if jax_compat.ad.is_undefined_primal(x)]
    if not {*unknown} <= {*places}:
        raise ValueError(
            f"cannot transpose {bound.callback} by other arguments than those in which it is "
            f"linear: {', '.join(bound.linear.names)}."
        )
    found: list[Any] = [None] * len(operands)
    if all(type(ct) is _Zero for ct in cotangents):
        for n in unknown:
            found[n] = _Zero(avals[n])
        return found
    known = [n for n in range(len(operands)) if n not in places]

    def of_element(arrays: Sequence[Any]) -> list[Any]:
        given = dict(zip(known, arrays, strict=False)) | vectors
        arguments = bound.linear.arguments(bound.callback, [given[n] for n in sorted(given)])
        return tree_leaves(_transposed_call(bound, arguments, bound.result(arrays[len(known) :])))

    # Those of integers are zero.
    cts = [
        jnp.zeros(aval.shape, aval.dtype) if type(ct) is _Zero or ct.dtype == _FLOAT0 else ct
        for ct, aval in zip(cotangents, bound.result_avals, strict=True)
    ]
    vectors = {}  # their avals for one batch element, by operand
    for n in places:
        batched = sum(axes[n] is not AxisKind.UNBATCHED for axes in bound.axes)
        vectors[n] = jax_compat.shaped_array(avals[n].shape[batched:], avals[n].dtype)
    whole = [AxisKind.BATCHED] * len(cts)
    mapped = below_vmaps(
        of_element,
        bound.levels,
        [[*(axes[n] for n in known), *whole] for axes in bound.axes],
        [[axes[n] for n in places] for axes in bound.axes],
    )
    back = mapped(jax_compat.vary_together([*(operands[n] for n in known), *cts]))
    for n, ct in zip(places, back, strict=True):
        found[n] = jax_compat.sharded_as(ct, avals[n]) if n in unknown else None
    return found


capability(Decides.INSIDE, lambda options: bool(options.linear), jvp=jvp, transpose=transpose)


def _bound(
    primitive: Any, *, callback: Any, result_avals: Any, levels: Any, **params: Any
) -> Bound:
    return Bound(primitive, callback, result_avals, levels, params)


def _transposed_call(bound: Bound, arguments: Arguments, ct: Any) -> Any:
    """Return the cotangents of the vectors of one batch element, which `arguments` has as avals."""
    __tracebackhide__ = True
    linear, vectors = bound.linear, arguments.vectors
    if linear.transposed is not None:
        return bound.call(linear.transposed, arguments, ct, vectors)
    if not linear.is_self_adjoint:
        raise ValueError(
            f"cannot transpose {bound.callback}: it is linear in {', '.join(linear.names)}, but "
            f"has no transpose. Define it, as @{linear.host.variable}.deftranspose, or register it "
            "with linear_self_adjoint=True if it is its own adjoint."
        )
    result, argument = (tree_map(lambda x: str(to_aval(x)), one) for one in (ct, vectors))
    if result != argument:
        raise ValueError(
            f"cannot transpose {bound.callback}: with linear_self_adjoint=True its result is like "
            f"{linear.names[0]}, but {result} is not {argument}. Drop linear_self_adjoint=True, "
            "and define its transpose."
        )
    # The transpose of what is its own adjoint is its complex conjugate.
    back = bound.call(linear, arguments, tree_map(jnp.conj, ct), vectors)
    return tree_map(jnp.conj, back)


def below_vmaps(
    function: _Flat,
    levels: Sequence[VmapLevel],
    given: Sequence[Sequence[AxisKind]],
    returned: Sequence[Sequence[AxisKind]],
) -> _Flat:
    """Return `function` for arrays below the vmaps of a call, each mapped by `jax.vmap` again.

    Args:
        function: takes and returns the arrays of one batch element.
        levels: the vmaps, innermost first.
        given: for each vmap, the axes of the arrays that `function` takes.
        returned: for each vmap, the axes of the arrays that it returns. An array that the vmap does
            not map over is the sum over its batch elements.
    """
    for level, taken, made in zip(levels, given, returned, strict=True):
        function = functools.partial(_mapped, function, level.size, taken, made)
    return function


def _mapped(
    function: _Flat,
    size: int,
    given: Sequence[AxisKind],
    returned: Sequence[AxisKind],
    arrays: Sequence[Any],
) -> list[Any]:
    elements = [
        x.squeeze(0) if kind is AxisKind.SIZE1 else x for x, kind in zip(arrays, given, strict=True)
    ]
    axes = [None if kind in _SHARED else 0 for kind in given]
    return [
        y.sum(0, dtype=y.dtype, keepdims=kind is AxisKind.SIZE1) if kind in _SHARED else y
        for y, kind in zip(
            jax.vmap(function, in_axes=(axes,), axis_size=size)(elements), returned, strict=True
        )
    ]


class Element(NamedTuple):
    """One batch element of a call that is differentiated by other arguments than the vectors.

    Attributes:
        bound: the call.
        operands: its operands.
        dots: the tangents of operands that move, by operand.
        result: its result.
    """

    bound: Bound
    operands: Sequence[Any]
    dots: dict[int, Any]
    result: Any

    @property
    def linear(self) -> Linear:
        """What is known of its function."""
        return self.bound.linear

    @property
    def arguments(self) -> Arguments:
        """Its arguments."""
        return self.linear.arguments(self.bound.callback, self.operands)

    def split_dots(self, zero: Callable[[Any], Any]) -> tuple[Arguments, Arguments]:
        """Return the tangents of vectors alone, and those of the others alone; else zeros."""
        places = self.linear.places(self.bound.callback)
        vectors, others = (
            [
                self.dots[n] if n in self.dots and (n in places) is of_vectors else zero(x)
                for n, x in enumerate(self.operands)
            ]
            for of_vectors in (True, False)
        )
        callback = self.bound.callback
        return self.linear.arguments(callback, vectors), self.linear.arguments(callback, others)

    def call(self, vectors: Any) -> Any:
        """Call its function with other vectors."""
        __tracebackhide__ = True
        like = tree_map(jax.typeof, self.result)
        return self.bound.call(self.linear, self.arguments, vectors, like)


def _by_all(
    bound: Bound, primals: Sequence[Any], moving: dict[int, Any], results: Sequence[Any]
) -> list[Any]:
    """Return the tangents of `results` by linear and other arguments."""
    __tracebackhide__ = True
    rule = (bound.linear.original or bound.linear).by_others
    if rule is None:
        _refuse(bound)
    count, end = len(primals), len(primals) + len(moving)

    def of_element(arrays: Sequence[Any]) -> list[Any]:
        __tracebackhide__ = True
        operands = list(arrays[:count])
        behind = bound.linear.arguments(bound.callback, operands).behind
        operands = stood_in(operands, behind)
        dots = dict(zip(moving, arrays[count:end], strict=True))
        result = bound.result(arrays[end:])
        found = tree_leaves(rule.tangent(Element(bound, operands, dots, result)))
        return [
            dot if is_inexact(y) else jnp.zeros_like(y)
            for y, dot in zip(arrays[end:], found, strict=True)
        ]

    whole = [AxisKind.BATCHED] * len(results)
    given = [[*axes, *(axes[n] for n in moving), *whole] for axes in bound.axes]
    mapped = below_vmaps(of_element, bound.levels, given, [whole] * len(given))
    return mapped(jax_compat.vary_together([*primals, *moving.values(), *results]))


def _refuse(bound: Bound) -> NoReturn:
    __tracebackhide__ = True
    known = bound.linear.original or bound.linear
    name, names = known.host.variable, ", ".join(known.names)
    arguments = [one.name for one in known.parameters()]
    others = " or ".join(one for one in arguments if one not in known.names)
    arguments.insert(arguments.index(known.names[0]), "x")
    raise ValueError(
        f"cannot differentiate {bound.callback} by {others}: it is linear in {names} "
        f"alone. Give it a rule: @{name}.defjvp. If it solves a system, give the residual of its "
        f"result x instead, zero if x is right: {name}.defresidual(lambda {', '.join(arguments)}: "
        "A(...) @ x - b)."
    )


class Residual:
    """The residual of a solver's result, which defines the derivative by all arguments.

    A result x of ``solve(a, b)`` has the residual ``A(a) x - b``. Its derivative is zero as well,
    so ``A(a) dx = db - dA(a) x`` (the implicit function theorem), which the solver solves: one more
    call. The result z of the transpose has the residual ``A(a)^T z - ct``, with ``dA(a)^T z`` by
    JAX's transpose of the residual's derivative.

    Args:
        original: what is known of the solver.
        function: takes its arguments, and its result before the first linear one.
    """

    def __init__(self, original: Linear, function: Callable[..., Any]) -> None:
        __tracebackhide__ = True
        self._original, self._function = original, function
        parameters, host = original.parameters(), original.host
        self._place = [one.name for one in parameters].index(original.first)
        names = [one.name for one in parameters if one.default is one.empty]
        names.insert(self._place, "x")
        if all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters):
            check_takes(
                function,
                names,
                f"the residual of {host.name}",
                f"the arguments of {host.name}, and its result x before {original.names[0]}: "
                f"({', '.join(names)})",
            )

    def tangent(self, element: Element) -> Any:
        """Return the tangent of the result of a call of the solver, or of its transpose."""
        __tracebackhide__ = True
        places = element.linear.places(element.bound.callback)
        moving = [n for n in element.dots if n not in places]

        def residual(x: Any, vectors: Any, *arrays: Any) -> Any:
            operands = list(element.operands)
            for n, array in zip(moving, arrays, strict=True):
                operands[n] = array
            arguments = element.linear.arguments(element.bound.callback, operands)
            return self._residual(arguments.others, x, vectors)

        def change(x: Any, vectors: Any) -> Any:
            """Return how the residual changes with the arguments that are no vectors."""
            at = [element.operands[n] for n in moving]
            by = [element.dots[n] for n in moving]
            return jax.jvp(lambda *arrays: residual(x, vectors, *arrays), at, by)[1]

        vectors, result = element.arguments.vectors, element.result
        if element.linear.original is None:
            changed = change(result, vectors)
        else:
            zeros = tree_map(jnp.zeros_like, result)
            changed = transposed(lambda x: change(x, zeros), vectors, result)
        dots, _ = element.split_dots(jnp.zeros_like)
        return element.call(
            tree_map(lambda dot, by: dot - by if is_inexact(dot) else dot, dots.vectors, changed)
        )

    def _residual(self, others: dict[str, Any], x: Any, vectors: Any) -> Any:
        __tracebackhide__ = True
        args, kwargs = self._original.call(others, vectors)
        try:
            found = self._function(*args[: self._place], x, *args[self._place :], **kwargs)
        except jax.errors.TracerArrayConversionError as error:
            add_note(
                error,
                f"raised in the residual of {self._original.host.name}, which JAX differentiates: "
                "write it with jax.numpy",
            )
            raise
        if tree_map(_word, found) != tree_map(_word, vectors):
            name, names = self._original.host.name, ", ".join(self._original.names)
            raise TypeError(
                f"cannot differentiate {name}: its residual is {tree_map(_word, found)}, expected "
                f"{tree_map(_word, vectors)} like {names}. Return A(...) @ x - b in that "
                "structure, with these shapes and dtypes."
            )
        return found


def _word(x: Any) -> str:
    return str(to_aval(jax.typeof(x))) if is_array(x) else repr(x)


class OwnRule:
    """The user's forward-mode rule, where JAX does not apply it.

    `jax.custom_jvp` applies a rule by ``defjvp`` where JAX differentiates a call of the callback.
    Where JAX differentiates what a derivative has computed, it has dropped the rule or transposed
    the call: in second derivatives, of loops in particular. The derivative of the transpose is the
    transpose of the rule, which is linear in the vectors.

    Args:
        original: what is known of the callback.
        rule: ``rule(*fixed, primals, tangents)`` returns the result and its tangent.
        nondiff_argnums: the arguments that `rule` gets as `fixed`.
        symbolic_zeros: whether `rule` takes tangents that are zero as such.
    """

    def __init__(
        self,
        original: Linear,
        rule: Callable[..., Any],
        nondiff_argnums: Sequence[int],
        symbolic_zeros: bool,
    ) -> None:
        self._original, self._rule = original, rule
        self._fixed, self._symbolic_zeros = sorted({*nondiff_argnums}), symbolic_zeros

    def tangent(self, element: Element) -> Any:
        """Return the tangent of the result of a call, or of a call of the transpose."""
        __tracebackhide__ = True
        arguments = element.arguments
        dots, moved = element.split_dots(self._zero)
        if element.linear.original is None:
            return self._applied(arguments, arguments.vectors, moved.others, dots.vectors)

        def by_rule(vectors: Any) -> Any:
            zeros = tree_map(self._zero, vectors)
            return self._applied(arguments, vectors, moved.others, zeros)

        by_others = transposed(by_rule, element.result, arguments.vectors)
        plain, _ = element.split_dots(jnp.zeros_like)
        by_cotangent = element.call(plain.vectors)
        return tree_map(lambda y, by: y + by if is_inexact(y) else y, by_cotangent, by_others)

    def _applied(self, arguments: Arguments, vectors: Any, dots: Any, vector_dots: Any) -> Any:
        """Return the tangent that the rule gives for the function itself, masked as the call is."""
        __tracebackhide__ = True
        # Arguments that were not passed have their defaults, as in JAX.
        defaults = {
            one.name: one.default
            for one in self._original.parameters()
            if one.default is not one.empty
        }
        zeros = {name: tree_map(self._zero, default) for name, default in defaults.items()}
        primals, _ = self._original.call(defaults | arguments.others, vectors)
        tangents, _ = self._original.call(zeros | dots, vector_dots)
        fixed = [primals[n] for n in self._fixed]
        moving = [n for n in range(len(primals)) if n not in self._fixed]
        given = tuple(primals[n] for n in moving), tuple(tangents[n] for n in moving)
        return applied(self._rule, arguments.behind, fixed, *given)[1]

    def _zero(self, x: Any) -> Any:
        """Return the tangent of what does not move, as the rule takes it."""
        if self._symbolic_zeros:
            return SymbolicZero(jax.typeof(x).to_tangent_aval())
        x = jnp.asarray(x)
        return jnp.zeros_like(x) if is_inexact(x) else np.zeros(x.shape, _FLOAT0)
