"""The methods of callbacks that are registered with ``linear=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..capabilities.compiled import register_compiled
from ..capabilities.derivatives import jvp_of_arrays
from ..capabilities.linear import Linear, by_residual, by_rule, transposed_by
from ..stack.call import HostFunction, differentiated_by, register, text_of


class LinearRules:
    """Defines the transpose of a linear callback."""

    host: HostFunction
    _check_no_other_rule: Callable[[str], None]
    _has_rule: Callable[[str], None]
    _rule: tuple[Any, ...] = ()

    def deftranspose(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Define the transpose of a callback that is registered with ``linear=``; a decorator.

        With it, JAX differentiates by the linear arguments in forward and reverse mode, to any
        order, under all transformations. The transpose of the transpose is the callback itself.

        Args:
            function: a host function. It gets the arguments of this callback, with the cotangent
                of the result, a pytree like it, in the place of the linear argument; if there are
                several, in the place of the first one, without the others. It returns the cotangent
                of the linear argument, a pytree like it; if there are several, a tuple of these in
                the order of `linear`. That of a buffer callback writes this into its first
                parameter. It is called with the options of this callback.

        The transpose of a complex function has no conjugate: it is ``a.T @ ct`` for ``a @ b``, as
        for `jax.linear_transpose`.

        Returns:
            `function`.

        Raises:
            TypeError: if the callback is not registered with ``linear=``, is its own adjoint, or
                `function` is not a host function or takes another number of arguments.

        >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
        >>> @jaxcb.pure(result="b", linear="b")
        ... def solve(a, b):
        ...     return np.linalg.solve(a, b)
        >>> @solve.deftranspose
        ... def solve_transposed(a, ct):
        ...     return np.linalg.solve(a.T, ct)
        >>> a, b = np.float32([[2, 1], [0, 4]]), np.float32([1, 2])
        >>> jax.grad(lambda b: solve(a, b).sum())(b)
        Array([0.5  , 0.125], dtype=float32)
        """
        __tracebackhide__ = True
        linear = self._linear("deftranspose")
        if not callable(function) or hasattr(function, "deftranspose"):
            raise TypeError(
                f"cannot use {text_of(function)} as the transpose of {self.host.name}: it is not "
                "a host "
                f"function. Write @{self.host.variable}.deftranspose, without another decorator, "
                "above a def."
            )
        host = register(function, ("transpose", self.host.name, linear.options))
        host.made_by = self.host.made_by
        transposed_by(linear, host)
        if self._rule:
            differentiated_by(host, *self._rule)
        if linear.options.compile:
            register_compiled(host)
        return function

    def defresidual(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Define the derivative of a linear solver by its other arguments; works as a decorator.

        The result x of a solver has a residual, ``A(a) @ x - b``, that is zero. So JAX
        differentiates the solver by `a`, too: a tangent takes one more call of it, and a cotangent
        one call of its transpose, in all (the implicit function theorem, as in
        `jax.lax.custom_root`).

        Args:
            function: the residual, written in JAX. It gets the arguments of the callback, with its
                result before the first linear argument: ``residual(a, x, b)``. It returns
                ``A(a) @ x - b``, a pytree like `b`; for several linear arguments, a tuple. With
                the other sign, ``b - A(a) @ x``, derivatives by `a` are wrong; `check` notices it.

        Returns:
            `function`.

        Raises:
            TypeError: if the callback is not registered with ``linear=``, or has another rule.

        >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
        >>> @jaxcb.pure(result="b", linear="b")
        ... def solve(a, b):
        ...     return np.linalg.solve(a, b)
        >>> _ = solve.deftranspose(lambda a, ct: np.linalg.solve(a.T, ct))
        >>> _ = solve.defresidual(lambda a, x, b: a @ x - b)
        >>> a, b = np.float32([[2, 0], [0, 4]]), np.float32([1, 2])
        >>> jax.grad(lambda a: solve(a, b).sum())(a)
        Array([[-0.25 , -0.25 ],
               [-0.125, -0.125]], dtype=float32)
        """
        __tracebackhide__ = True
        linear = self._linear("defresidual")
        if not callable(function):
            raise TypeError(
                f"cannot use {text_of(function)} as the residual of {self.host.name}: it is not a "
                "function. Write it in JAX, as lambda a, x, b: A(a) @ x - b."
            )
        self._check_no_other_rule("residual")
        linear.by_others = by_residual(linear, function)
        self._differentiated_by(function)
        self._has_rule("residual")
        return function

    def _rule_where_jax_drops_it(
        self, rule: Callable[..., Any], nondiff_argnums: Sequence[int], symbolic_zeros: bool
    ) -> None:
        """Use a forward-mode rule where JAX does not: in the derivatives of its derivatives."""
        if isinstance(self.host.derivative, Linear):
            linear, of_arrays = self.host.derivative, jvp_of_arrays(rule)
            linear.by_others = by_rule(linear, of_arrays, nondiff_argnums, symbolic_zeros)

    def _differentiated_by(self, *rule: Any) -> None:
        """Note the derivative rule, also of the transpose: programs with the rule call both."""
        linear, self._rule = self.host.derivative, rule
        differentiated_by(self.host, *rule)
        if isinstance(linear, Linear) and linear.transposed is not None:
            differentiated_by(linear.transposed.host, *rule)

    def _linear(self, method: str) -> Linear:
        __tracebackhide__ = True
        if not isinstance(self.host.derivative, Linear):
            name = self.host.name
            raise TypeError(
                f"cannot call {name}.{method}: it is not registered as linear. Name the "
                "parameters in which it is linear in linear=. If it is not linear, such as a root "
                f"finder, give it a rule by @{self.host.variable}.defjvp; the cookbook has one in "
                "'Differentiate through a root finder'."
            )
        return self.host.derivative
