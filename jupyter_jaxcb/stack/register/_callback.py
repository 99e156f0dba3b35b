"""What a decorator makes of a function: a callback that JAX code calls like any function."""

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
    """A registered host function.

    Call it in JAX code like any function. `host` is what compiled programs refer to;
    ``__wrapped__`` is the Python function it was made from; `options` says how it was registered,
    where that is not the default: ``"vmap_method=expand_dims"``; `settings` says it as values.

    Args:
        flavor: its name.
        function: the host function.
        host: what `register` made of it.
        bind: ``bind(args, kwargs)`` binds one call.
        options: it was registered with.
        declared: what it returns; None: nothing.
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
        except BaseException:  # its name, or its text of help, may fail as it likes
            self.__name__ = host.name
        self.__wrapped__ = function
        self.flavor = flavor
        self.host = host
        host.made_by = "decorator"
        self.settings = options.settings() if options else {}
        self.options = options.words() if options else ""
        self.declared = declared
        self.rule: str | None = None  # "jvp", "vjp" or "finite"
        self.not_differentiated: Sequence[int] = ()  # arguments, by a rule
        self._bind = bind
        self._call = self._plain  # or what a derivative rule makes of it
        look_at_new_body(host)
        _warn_of_callback_inside(flavor, host.name, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._call(*args, **kwargs)

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._bind(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        """As a method: the instance is the first argument, an array, a pytree or static."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<{self.flavor} callback {self.host.name}>"


class RuledCallback(Callback):
    """A registered host function that may have a derivative rule."""

    _leading = 0  # what the host function is given before the arguments

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
        """Gives it a reverse-mode derivative rule.

        Args:
            forward: ``forward(*args) -> (out, residuals)`` as for `jax.custom_vjp`.
            backward: ``backward(residuals, cotangent) -> cotangents of the arguments``, a tuple.
            nondiff_argnums: as for `jax.custom_vjp`.
            symbolic_zeros: as for `jax.custom_vjp`.

        Raises:
            TypeError: only one function, as by a decorator.
        """
        __tracebackhide__ = True
        if backward is None:
            raise TypeError(
                f"cannot use None as a derivative rule of {self.host.name}: defvjp takes two "
                "functions, so it is no decorator. Call it with (forward, backward) below both."
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

        # JAX resolves keywords and fills in defaults by the signature; a ufunc's has defaults
        # (out, where, ...) that are no arguments of the callback.
        if not isinstance(self.__wrapped__, np.ufunc):
            functools.update_wrapper(primal, self.__wrapped__)
            primal.__signature__ = inspect.signature(self)  # type: ignore[attr-defined]
        return primal


class PureCallback(RuledCallback):
    """A registered pure host function."""

    def differ(self, bind: BindCall) -> None:
        """Gives it a derivative by central differences, see ``pure(derivative="finite")``."""
        self.rule = "finite"
        self._call = with_differences(self._primal(), self.host, bind)


class BufferCallback(RuledCallback):
    """A registered host function that writes into the buffers it is given."""

    _leading = 1

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the function without the buffers, which JAX code does not pass."""
        return inspect.signature(without_leading(self.__wrapped__, self._leading))


def _warn_of_callback_inside(flavor: str, name: str, function: Callable[..., Any]) -> None:
    """Warns, once for its code, of a host function that calls what is registered too: a helper."""
    code = getattr(function, "__code__", None)
    if code is not None:
        if code in _looked_at:
            return
        _looked_at.add(code)
    for load in loads(function):
        if load.whole and isinstance(load.value, Callback):
            warnings.warn_explicit(
                f"the {flavor} callback {name} calls {load.name}, which is a callback itself: each "
                "of these calls goes through JAX, and is rounded to the dtypes that JAX has. If "
                f"{load.name} is a helper, do not register it (in a cell, name what is to be a "
                f"callback: %%jax_callback {flavor} {name}); or call {load.name}.__wrapped__.",
                JaxInHostFunctionWarning,
                load.code.co_filename,
                load.line,
            )
            return


def check_function(function: Any, flavor: str) -> None:
    """Raises TypeError for what cannot be registered."""
    __tracebackhide__ = True
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
