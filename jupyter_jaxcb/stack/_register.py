"""Decorators: a Python function becomes a callback that JAX code calls like any function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ._autodiff import with_jvp, with_vjp
from ._batching import check_vmap_method
from ._callback import HostFunction, register
from ._debug import bind_debug
from ._io import bind_io
from ._pure import bind_pure
from ._result import result_interface


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()


class Callback:
    """A registered host function.

    Call it in JAX code like any function. `host` is what compiled programs refer to;
    ``__wrapped__`` is the Python function it was made from.
    """

    def __init__(
        self, flavor: str, function: Callable[..., Any], host: HostFunction, call: Callable
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.flavor = flavor
        self.host = host
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.flavor} callback {self.host.name}>"


class PureCallback(Callback):
    """A registered pure host function, which may have a derivative rule."""

    def __init__(
        self, function: Callable[..., Any], host: HostFunction, bind: Callable[..., Any]
    ) -> None:
        super().__init__("pure", function, host, self._plain)
        self._bind = bind

    def defjvp(
        self,
        rule: Callable[..., Any],
        *,
        nondiff_argnums: Sequence[int] = (),
        symbolic_zeros: bool = False,
    ) -> Callable[..., Any]:
        """Gives it a forward-mode derivative rule; works as a decorator.

        Args:
            rule: ``rule(primals, tangents) -> (primal_out, tangent_out)`` as for
                `jax.custom_jvp`, written in JAX. Calling this callback in it gives higher
                orders.
            nondiff_argnums: as for `jax.custom_jvp`.
            symbolic_zeros: as for `jax.custom_jvp`.

        Returns:
            `rule`.

        >>> import jax, numpy as np, jax.numpy as jnp, jupyter_jaxcb as jaxcb
        >>> sin = jaxcb.pure(np.sin, result=lambda x: x)
        >>> @sin.defjvp
        ... def sin_jvp(primals, tangents):
        ...     (x,), (dx,) = primals, tangents
        ...     return sin(x), jnp.cos(x) * dx
        >>> float(jax.grad(sin)(0.0))
        1.0
        """
        self._call = with_jvp(self._primal(), rule, nondiff_argnums, symbolic_zeros)
        return rule

    def defvjp(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        *,
        nondiff_argnums: Sequence[int] = (),
        symbolic_zeros: bool = False,
    ) -> None:
        """Gives it a reverse-mode derivative rule.

        Args:
            forward: ``forward(*args) -> (out, residuals)`` as for `jax.custom_vjp`.
            backward: ``backward(residuals, cotangent) -> cotangents of the arguments``.
            nondiff_argnums: as for `jax.custom_vjp`.
            symbolic_zeros: as for `jax.custom_vjp`.
        """
        self._call = with_vjp(self._primal(), forward, backward, nondiff_argnums, symbolic_zeros)

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._bind(args, kwargs)

    def _primal(self) -> Callable[..., Any]:
        bind = self._bind

        def primal(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
            return bind(args, kwargs)

        # JAX resolves keywords and fills in defaults by the signature; a ufunc's has defaults
        # (out, where, ...) that are no arguments of the callback.
        if not isinstance(self.__wrapped__, np.ufunc):
            functools.update_wrapper(primal, self.__wrapped__)
        return primal


@overload
def pure(function: Callable[..., Any], *, result: Any = ..., vmap_method: str | None = ...,
         sharding: Any = ...) -> PureCallback: ...  # fmt: skip
@overload
def pure(*, result: Any = ..., vmap_method: str | None = ...,
         sharding: Any = ...) -> Callable[[Callable[..., Any]], PureCallback]: ...  # fmt: skip
def pure(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    sharding: Any = None,
) -> Any:
    """Registers a pure host function; works as a decorator.

    Args:
        function: its result depends on its arguments alone. It gets read-only numpy arrays.
        result: what it returns: a pytree of things with shape and dtype, an expression over its
            parameter names (``"z"``, ``"(z, z.shape[:1])"``) or a function of its parameters.
        vmap_method: how vmap calls it; the default ``"sequential"`` is always right: one host
            call per lane. ``"expand_dims"`` and ``"broadcast_all"`` make one call of the whole
            batch, for functions that broadcast as numpy's do.
        sharding: a SingleDeviceSharding naming the device to call from.

    Returns:
        A `PureCallback`: call it in JAX code; `defjvp` and `defvjp` give it derivatives.

    Raises:
        TypeError: `function` is not callable.
        ValueError: no `result`, or an unknown `vmap_method`.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.pure(result="x")
    ... def double(x):
    ...     return 2 * x
    >>> jax.vmap(double)(np.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if function is None:
        return functools.partial(pure, result=result, vmap_method=vmap_method, sharding=sharding)
    _check(function, "pure", result)
    check_vmap_method(vmap_method)
    host = register(function, ("pure", result_interface(result), vmap_method, sharding))

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        return bind_pure(host, result, args, kwargs, vmap_method=vmap_method, sharding=sharding)

    return PureCallback(function, host, bind)


@overload
def io(function: Callable[..., Any], *, result: Any = ..., ordered: bool = ...,
       sharding: Any = ...) -> Callback: ...  # fmt: skip
@overload
def io(*, result: Any = ..., ordered: bool = ...,
       sharding: Any = ...) -> Callable[[Callable[..., Any]], Callback]: ...  # fmt: skip
def io(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    ordered: bool = False,
    sharding: Any = None,
) -> Any:
    """Registers a host function with effects; works as a decorator.

    It runs exactly as often as the program says, its result used or not.

    Args:
        function: the host function; gets read-only numpy arrays.
        result: as for `pure`; None: it returns nothing.
        ordered: keep program order among all ordered io callbacks; vmap then refuses.
        sharding: a SingleDeviceSharding naming the device to call from.

    Returns:
        A `Callback`: call it in JAX code.

    Raises:
        TypeError: `function` is not callable.
        ValueError: no `result`.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> generator = np.random.default_rng(0)
    >>> @jaxcb.io(result="x")
    ... def noise(x):
    ...     return generator.standard_normal(x.shape, x.dtype)
    >>> jax.jit(noise)(np.zeros(2, np.float32)).shape
    (2,)
    """
    if function is None:
        return functools.partial(io, result=result, ordered=ordered, sharding=sharding)
    _check(function, "io", result)
    host = register(function, ("io", result_interface(result), ordered, sharding))

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        return bind_io(host, result, args, kwargs, ordered=ordered, sharding=sharding)

    return Callback("io", function, host, call)


@overload
def debug(function: Callable[..., Any], *, ordered: bool = ...,
          partitioned: bool = ...) -> Callback: ...  # fmt: skip
@overload
def debug(*, ordered: bool = ...,
          partitioned: bool = ...) -> Callable[[Callable[..., Any]], Callback]: ...  # fmt: skip
def debug(
    function: Callable[..., Any] | None = None,
    *,
    ordered: bool = False,
    partitioned: bool = False,
) -> Any:
    """Registers a host function that looks on and returns nothing; works as a decorator.

    Args:
        function: what it returns is ignored; arguments that are no arrays reach it unchanged.
        ordered: keep program order among ordered debug callbacks.
        partitioned: under jit over several devices, call once per device with its shard.

    Returns:
        A `Callback`: call it in JAX code; gradients pass by.

    Raises:
        TypeError: `function` is not callable.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.debug
    ... def show(x):
    ...     print("saw", x)
    >>> jax.jit(show)(np.float32(3)), jax.effects_barrier()
    saw 3.0
    (None, None)
    """
    if function is None:
        return functools.partial(debug, ordered=ordered, partitioned=partitioned)
    _check(function, "debug", None)
    host = register(function, ("debug", ordered, partitioned))

    def call(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        bind_debug(host, args, kwargs, ordered=ordered, partitioned=partitioned)

    return Callback("debug", function, host, call)


def _check(function: Any, flavor: str, result: Any) -> None:
    if isinstance(function, Callback):
        raise TypeError(
            f"cannot register {function!r} again as {flavor}: take one of the two registrations "
            "away."
        )
    if not callable(function):
        raise TypeError(
            f"cannot register {function!r} as a {flavor} callback: it is not a function. Write "
            f"@jaxcb.{flavor}(...) above a def."
        )
    if result is MISSING:
        name = getattr(function, "__name__", repr(function))
        nothing = " or result=None if it returns nothing" if flavor == "io" else ""
        raise ValueError(
            f"cannot register {name} as a {flavor} callback without its result: say what it "
            'returns, as an expression over its parameters (result="x"), as '
            f"jax.ShapeDtypeStruct(shape, dtype){nothing}."
        )
