"""The methods of callbacks that are registered with ``linear=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..capabilities.compiled import register_compiled
from ..capabilities.linear import Linear, transposed_by
from ..stack.call import HostFunction, register


class LinearRules:
    """Defines the transpose of a linear callback."""

    host: HostFunction

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
                f"cannot use {function!r} as the transpose of {self.host.name}: it is not a host "
                f"function. Write @{self.host.name}.deftranspose, without another decorator, above "
                "a def."
            )
        host = register(function, ("transpose", self.host.name, linear.options))
        host.made_by = self.host.made_by
        transposed_by(linear, host)
        if linear.options.compile:
            register_compiled(host)
        return function

    def _linear(self, method: str) -> Linear:
        __tracebackhide__ = True
        if self.host.derivative is None:
            raise TypeError(
                f"cannot call {self.host.name}.{method}: it is not registered as linear. Name the "
                f"parameters in which it is linear: linear='b'."
            )
        return self.host.derivative
