"""The callback that a decorator returns: JAX code calls it like any function."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import HostFunction, Options, without_leading
from ..derivatives import BindCall, Rule, with_differences, with_jvp, with_vjp
from ..lint import JaxInHostFunctionWarning, loads, look_at_new_body
from ..results import result_avals

_looked_at: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


class Callback:
    """A registered host function; call it in JAX code like any function.

    Attributes:
        __wrapped__: the Python function that was registered.
        flavor: the name of its flavor.
        host: the `HostFunction` that compiled programs refer to.
        options: the options that are not the default, as text: ``"vmap_method=expand_dims"``.
        settings: the same options as values.
        declared: its declared result.

    Args:
        flavor: the name of its flavor.
        function: the host function.
        host: the result of `register`.
        bind: ``bind(args, kwargs)`` binds one call.
        options: its options.
        declared: its declared result; None if it returns nothing.
    """

    def __init__(
        self,
        flavor: str,
        function: Callable[..., Any],
        host: HostFunction,
        bind: Callable[[tuple[Any, ...], dict[str, Any]], Any],
        options: Options | None = None,
        *,
        declared: Any = None,
    ) -> None:
        try:
            functools.update_wrapper(self, function)
        except KeyboardInterrupt:
            raise
        except BaseException:  # its __name__ or __doc__ may be a property that raises anything
            self.__name__ = host.name
        self.__wrapped__ = function
        self.flavor = flavor
        self.host = host
        host.made_by = "decorator"
        self.settings = options.settings() if options else {}
        self.options = options.words() if options else ""
        self.declared = declared
        self.rule: str | None = None  # "jvp", "vjp" or "finite"
        self.not_differentiated: Sequence[int] = ()  # nondiff_argnums of its rule
        self._bind = bind
        self._call = self._plain  # replaced by a derivative rule
        look_at_new_body(host)
        _warn_of_callback_inside(flavor, host.name, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._call(*args, **kwargs)

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._bind(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        """Bind as a method; the instance is an array, a pytree or a static argument."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<{self.flavor} callback {self.host.name}>"


class RuledCallback(Callback):
    """A registered host function that may have a derivative rule."""

    _leading = 0  # number of parameters of the host function before the arguments: `out`

    def defjvp(
        self,
        rule: Callable[..., Any],
        *,
        nondiff_argnums: Sequence[int] = (),
        symbolic_zeros: bool = False,
    ) -> Callable[..., Any]:
        """Define a forward-mode derivative rule; works as a decorator.

        Args:
            rule: ``rule(primals, tangents) -> (primal_out, tangent_out)`` as for
                `jax.custom_jvp`, written in JAX. If it calls this callback, higher derivatives
                work too.
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
        self.rule, self.not_differentiated = "jvp", tuple(nondiff_argnums)
        self._call = with_jvp(self._primal(), self._rule(rule), nondiff_argnums, symbolic_zeros)
        return rule

    def defvjp(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None = None,
        *,
        nondiff_argnums: Sequence[int] = (),
        symbolic_zeros: bool = False,
    ) -> None:
        """Define a reverse-mode derivative rule.

        Args:
            forward: ``forward(*args) -> (out, residuals)`` as for `jax.custom_vjp`.
            backward: ``backward(residuals, cotangent)`` returns a tuple with one cotangent for
                each argument.
            nondiff_argnums: as for `jax.custom_vjp`.
            symbolic_zeros: as for `jax.custom_vjp`.

        Raises:
            TypeError: if `backward` is missing, as when it is used as a decorator.
        """
        __tracebackhide__ = True
        if backward is None:
            raise TypeError(
                f"cannot use None as a derivative rule of {self.host.name}: defvjp takes two "
                f"functions and is not a decorator. Call {self.host.name}.defvjp(forward, "
                "backward)."
            )
        self.rule, self.not_differentiated = "vjp", tuple(nondiff_argnums)
        self._call = with_vjp(
            self._primal(),
            self._rule(forward),
            self._rule(backward),
            nondiff_argnums,
            symbolic_zeros,
        )

    def _rule(self, function: Callable[..., Any]) -> Rule:
        def declared(*args: Any) -> Any:
            function = without_leading(self.host.current, self._leading)
            return result_avals(self.declared, function, args, {})

        return Rule(self.host.name, function, declared)

    def _primal(self) -> Callable[..., Any]:
        bind = self._bind

        def primal(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return bind(args, kwargs)

        # JAX resolves keywords and defaults by the signature. That of a ufunc has parameters
        # (out, where, ...) that are not arguments of the callback.
        if not isinstance(self.__wrapped__, np.ufunc):
            functools.update_wrapper(primal, self.__wrapped__)
            primal.__signature__ = inspect.signature(self)  # type: ignore[attr-defined]
        return primal


class PureCallback(RuledCallback):
    """A registered pure host function."""

    def differ(self, bind: BindCall) -> None:
        """Differentiate by central differences, see ``pure(derivative="finite")``."""
        self.rule = "finite"
        self._call = with_differences(self._primal(), self.host, bind)


class BufferCallback(RuledCallback):
    """A registered host function that writes its results into buffers."""

    _leading = 1

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature without the buffers, which JAX code does not pass."""
        return inspect.signature(without_leading(self.__wrapped__, self._leading))


def _warn_of_callback_inside(flavor: str, name: str, function: Callable[..., Any]) -> None:
    """Warn once for each code object if a host function calls another registered callback."""
    code = getattr(function, "__code__", None)
    if code is not None:
        if code in _looked_at:
            return
        _looked_at.add(code)
    for load in loads(function):
        if load.whole and isinstance(load.value, Callback):
            warnings.warn_explicit(
                f"the {flavor} callback {name} calls {load.name}, another callback: the inner call "
                f"goes through JAX and rounds to JAX's dtypes. Call {load.name}.__wrapped__, or do "
                f"not register {load.name} (in a cell: %%jax_callback {flavor} {name}).",
                JaxInHostFunctionWarning,
                load.code.co_filename,
                load.line,
            )
            return


def check_function(function: Any, flavor: str) -> None:
    """Raise TypeError for a value that cannot be registered."""
    __tracebackhide__ = True
    if isinstance(function, Callback):
        raise TypeError(
            f"cannot register {function!r} again as {flavor}. Remove one of the two registrations."
        )
    if not callable(function):
        raise TypeError(
            f"cannot register {function!r} as a {flavor} callback: it is not a function. Write "
            f"@jaxcb.{flavor}(...) above a def."
        )
