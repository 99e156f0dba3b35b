"""The callback that a decorator returns: JAX code calls it like any function."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.tree_util import tree_flatten, tree_unflatten

from ..capabilities.derivatives import with_rule
from ..capabilities.lint import JaxInHostFunctionWarning, look_at_new_body, reached
from ..capabilities.masked import (
    MASK,
    checked_mask,
    otherwise_of,
    select,
)
from ..stack.call import HostFunction, plain_signature, text_of, without_leading
from ..stack.options import Options
from ..stack.results import MISSING, result_avals
from ._linear import LinearRules
from ._watched import watched

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
        returned: what the host function returns, if that is more: the gradient beside its value.

    Args:
        function: the host function.
        host: the result of `register`.
        bind: ``bind(args, kwargs)`` binds one call, ``bind(args, kwargs, mask=mask)`` a masked one.
        options: its options.
        declared: its declared result; None if it returns nothing.
    """

    _leading = 0  # number of parameters of the host function before the arguments: `out`

    def __init__(
        self,
        function: Callable[..., Any],
        host: HostFunction,
        bind: Callable[..., Any],
        options: Options,
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
        if isinstance(type(function).__call__, types.FunctionType) and not self._leading:
            with contextlib.suppress(TypeError, ValueError):  # it has none
                # JAX asks for the signature, and inspect would compare the object with classes.
                self.__signature__ = plain_signature(function)
        self.flavor = options.flavor
        self.host = host
        host.made_by, host.rule = "decorator", None
        self.settings = options.settings()
        self.options = options.words()
        self.declared = self.returned = declared
        self.rule: str | None = None  # "jvp", "vjp", "residual" or "finite"
        self.not_differentiated: Sequence[int] = ()  # nondiff_argnums of its rule
        self._bind = bind
        self._call = self._plain  # these two are replaced by a derivative rule
        self._call_where = self._plain_where
        look_at_new_body(host)
        _warn_of_callback_inside(options.flavor, host.name, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if watched.report is not None:
            watched.report(self, args, kwargs, True)
        return self._call(*args, **kwargs)

    def where(self, mask: Any, /, *args: Any, otherwise: Any = MISSING, **kwargs: Any) -> Any:
        """Call the host function only where `mask` is true; the result is `otherwise` elsewhere.

        Under vmap there is one mask for each batch element, and the host function runs for the
        elements that need it: ``mask.sum()`` host calls if vmap makes one call for each element. If
        it makes one call for all (as with ``vmap_method="expand_dims"``), that call gets the needed
        elements alone, on one batch axis, whose length is the number of needed elements. There is
        no call if no element needs one.

        The derivative where `mask` is false is that of `otherwise`. The callbacks that a derivative
        rule calls itself run for the needed elements only, too.

        Args:
            mask: a boolean scalar.
            *args: the arguments of the host function.
            otherwise: the result where `mask` is false: arrays that JAX promotes to the declared
                dtypes and broadcasts to the declared shapes, in the same structure; or one number
                for all arrays. Not for callbacks without results.
            **kwargs: the keyword arguments of the host function. Its own parameter `otherwise`, if
                it has one, is passed by position.

        Returns:
            Arrays as declared.

        Raises:
            TypeError: if `mask` is not boolean, `otherwise` is missing or has a dtype that JAX does
                not promote to the declared one, or the calls of this callback cannot be masked:
                those of taps.
            ValueError: if `mask` is not a scalar, or `otherwise` has another shape.

        >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
        >>> from scipy.special import zeta
        >>> hurwitz = jaxcb.pure(lambda q: np.float32(zeta(3, q)), result="q")
        >>> safe = lambda q: hurwitz.where(q > 0, q, otherwise=np.nan)
        >>> jax.vmap(safe)(np.float32([1.0, -1.0, 2.0]))
        Array([1.2020569,       nan, 0.2020569], dtype=float32)
        """
        __tracebackhide__ = True
        problem = self._why_not_masked()
        if problem is not None:
            raise TypeError(f"cannot mask the calls of {self.host.name}: {problem}")
        self._check_own_otherwise(args, kwargs)
        mask = checked_mask(self.host.name, mask)
        if watched.report is not None:
            watched.report(self, args, kwargs, mask)
        if self.declared is None:
            self._check_no_otherwise(otherwise)
            return self._call_where(mask, *args, **kwargs)
        function = without_leading(self.host.current, self._leading)
        declared = result_avals(self.declared, function, args, kwargs)
        others = otherwise_of(self.host.name, otherwise, declared)
        results, tree = tree_flatten(self._call_where(mask, *args, **kwargs))
        return tree_unflatten(tree, select(mask, results, others))

    def _why_not_masked(self) -> str | None:
        """Return why its calls cannot be masked, and what to do; None if they can."""
        if self.flavor == "tap":
            return "a tap passes its value on. Register it as debug."
        return None

    def _check_own_otherwise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise TypeError if a parameter `otherwise` of the host function has no argument."""
        __tracebackhide__ = True
        try:
            signature = plain_signature(without_leading(self.host.current, self._leading))
            own = signature.parameters.get("otherwise")
            given = signature.bind_partial(*args, **kwargs).arguments
        except (TypeError, ValueError):  # no signature, or the bind says what does not fit
            return
        if own is not None and own.default is own.empty and own.name not in given:
            by_position = own.kind is not own.KEYWORD_ONLY
            raise TypeError(
                f"cannot call {self.host.name}.where: its otherwise= is the result where the mask "
                f"is false, not the parameter of {self.host.name} with this name. "
                + ("Pass that one by position." if by_position else "Rename the parameter.")
            )

    def _check_no_otherwise(self, otherwise: Any) -> None:
        __tracebackhide__ = True
        if otherwise is not MISSING:
            raise TypeError(
                f"cannot call {self.host.name}.where with otherwise=: it returns nothing. Drop "
                "otherwise=."
            )

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._bind(args, kwargs)

    def _plain_where(self, mask: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._bind(args, kwargs, mask=mask)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        """Bind as a method; the instance is an array, a pytree or a static argument."""
        return self if instance is None else _Method(self, instance)

    def __repr__(self) -> str:
        return f"<{self.flavor} callback {self.host.name}>"


class _Method(functools.partial):
    """A callback with its first argument, the instance."""

    def where(self, mask: Any, /, *args: Any, **kwargs: Any) -> Any:
        """See `Callback.where`."""
        __tracebackhide__ = True
        callback: Any = self.func
        return callback.where(mask, *self.args, *args, **kwargs)


class RuledCallback(LinearRules, Callback):
    """A registered host function that may have a derivative rule."""

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

        Raises:
            TypeError: if there is a rule by `defvjp`.

        >>> import jax, numpy as np, jax.numpy as jnp, jupyter_jaxcb as jaxcb
        >>> sin = jaxcb.pure(np.sin, result=lambda x: x)
        >>> @sin.defjvp
        ... def sin_jvp(primals, tangents):
        ...     (x,), (dx,) = primals, tangents
        ...     return sin(x), jnp.cos(x) * dx
        >>> float(jax.grad(sin)(0.0))
        1.0
        """
        __tracebackhide__ = True
        self._check_no_other_rule("jvp")
        self._use_rule("jvp", [rule], nondiff_argnums, symbolic_zeros)
        self._rule_where_jax_drops_it(rule, nondiff_argnums, symbolic_zeros)
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
            TypeError: if `backward` is missing, as when it is used as a decorator, or if there is
                a rule by `defjvp`.
        """
        __tracebackhide__ = True
        if backward is None:
            raise TypeError(
                f"cannot use None as a derivative rule of {self.host.name}: defvjp takes two "
                f"functions and is not a decorator. Call {self.host.variable}.defvjp(forward, "
                "backward)."
            )
        self._check_no_other_rule("vjp")
        self._use_rule("vjp", [forward, backward], nondiff_argnums, symbolic_zeros)

    def _use_rule(
        self,
        kind: str,
        rules: Sequence[Callable[..., Any]],
        nondiff_argnums: Sequence[int],
        symbolic_zeros: bool,
    ) -> None:
        __tracebackhide__ = True
        given = self.host.name, rules, nondiff_argnums, symbolic_zeros
        self._call = with_rule(self._primal(), *given)
        self._call_where = with_rule(self._primal_where(), *given, gate=MASK)
        self._differentiated_by(*rules, tuple(nondiff_argnums), symbolic_zeros)
        self._has_rule(kind, nondiff_argnums)

    def _has_rule(self, kind: str, nondiff_argnums: Sequence[int] = ()) -> None:
        self.rule = self.host.rule = kind
        if not self.settings.get("linear"):
            self.host.derivative = None  # of finite differences, or a returned gradient
        self.not_differentiated = tuple(nondiff_argnums)

    def _check_no_other_rule(self, kind: str) -> None:
        """Raise TypeError if a rule of the other kind would be lost; JAX allows only one."""
        __tracebackhide__ = True
        if self.rule in {"jvp", "vjp", "residual"} - {kind}:
            name, old = self.host.name, self.rule
            raise TypeError(
                f"cannot give {name} a rule by def{kind}: it has one by def{old}, and JAX uses one "
                f"rule. To replace it, register {name} again. A linear function has both modes "
                "with linear= and deftranspose."
            )

    def _primal(self) -> Callable[..., Any]:
        bind = self._bind

        def primal(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return bind(args, kwargs)

        # JAX resolves keywords and defaults by the signature. That of a ufunc has parameters
        # (out, where, ...) that are not arguments of the callback.
        if not isinstance(self.__wrapped__, np.ufunc):
            self._dress(primal)
            primal.__signature__ = self._parameters()  # type: ignore[attr-defined]
        primal.__name__ = self.host.name  # in JAX's errors about a rule
        return primal

    def _dress(self, primal: Callable[..., Any]) -> None:
        """Give a function the names of the host function, which the callback has read once."""
        functools.update_wrapper(primal, self, updated=())
        primal.__wrapped__ = self.__wrapped__  # type: ignore[attr-defined]

    def _parameters(self) -> inspect.Signature:
        """Return its signature, by which JAX resolves the arguments of a rule.

        Raises:
            TypeError: if the function has none, as some written in C.
        """
        __tracebackhide__ = True
        try:
            return plain_signature(without_leading(self.__wrapped__, self._leading))
        except (TypeError, ValueError):
            name = self.host.name
            raise TypeError(
                f"cannot give {name} a rule: its parameters are unknown. Wrap it, as in def f(x): "
                f"return {name}(x)."
            ) from None

    def _primal_where(self) -> Callable[..., Any]:
        """Return a function of the mask and the arguments."""
        bind = self._bind

        def primal(mask: Any, /, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return bind(args, kwargs, mask=mask)

        if not isinstance(self.__wrapped__, np.ufunc):
            self._dress(primal)
            own = self._parameters()
            first = inspect.Parameter("__mask__", inspect.Parameter.POSITIONAL_ONLY)
            primal.__signature__ = own.replace(  # type: ignore[attr-defined]
                parameters=[first, *own.parameters.values()]
            )
        return primal


class PureCallback(RuledCallback):
    """A registered pure host function."""

    def differ(self, kind: str, rule: Callable[..., Any]) -> None:
        """Differentiate calls by a rule of JAX for them.

        Args:
            kind: ``"finite"`` or ``"gradient"``.
            rule: see `capabilities.derivatives`.
        """
        self._has_rule(kind)
        self.host.derivative = rule


def _warn_of_callback_inside(flavor: str, name: str, function: Callable[..., Any]) -> None:
    """Warn once for each code object if a host function calls another registered callback."""
    if type(function) in (types.FunctionType, types.MethodType):
        if function.__code__ in _looked_at:
            return
        _looked_at.add(function.__code__)
    for reading in reached(function):
        for inner, value, line, whole, _ in reading.uses:
            # A guess may take a method for the callback of that name, ``solve`` in ``lu.solve``.
            if whole and reading.has_source and issubclass(type(value), Callback):
                warnings.warn_explicit(
                    f"the {flavor} callback {name} calls {inner}, another callback: the inner call "
                    f"goes through JAX and rounds to JAX's dtypes. Call {inner}.__wrapped__, or do "
                    f"not register {inner} (in a cell: %%jax_callback {flavor} {name}).",
                    JaxInHostFunctionWarning,
                    reading.file,
                    line,
                )
                return


def check_function(function: Any, flavor: str) -> None:
    """Raise TypeError for a value that cannot be registered."""
    __tracebackhide__ = True
    if issubclass(type(function), Callback):  # the `__class__` of a user's object may raise
        raise TypeError(
            f"cannot register {text_of(function)} again as {flavor}. Remove one of the two "
            "registrations."
        )
    if not callable(function):
        raise TypeError(
            f"cannot register {text_of(function)} as a {flavor} callback: it is not a function. "
            "Write "
            f"@jaxcb.{flavor}(...) above a def."
        )
