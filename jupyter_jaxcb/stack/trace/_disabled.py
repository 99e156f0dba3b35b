"""Leave callbacks out of programs that are traced inside ``disabled()``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import jax

from ... import jax_compat

# A user context is part of JAX's cache keys, so programs traced inside and outside stay apart.
_disabled = jax.make_user_context(False)

left_out_p = jax_compat.Primitive("jaxcb_left_out")
left_out_p.multiple_results = True


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Leave this package's callbacks out of what is traced: for `jax.export`, caching, timing.

    Callbacks that return nothing are removed. A callback that returns something is allowed as long
    as nothing uses its result: `disabled` never makes up a value.

    Yields:
        None.

    Raises:
        NotImplementedError: if a result is used. Raised when the program is compiled, or
            immediately for a call outside jit.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jax.jit
    ... def double(x):
    ...     jaxcb.debug_print("x = {}", x)
    ...     return 2 * x
    >>> with jaxcb.disabled():
    ...     exported = jax.export.export(double)(np.float32(1))
    >>> exported.call(np.float32(4))
    Array(8., dtype=float32)
    """
    with _disabled(True):
        yield


def enabled() -> contextlib.AbstractContextManager[None]:
    """Undo an enclosing `disabled`, for runs that need the callbacks."""
    return _disabled(False)


def is_disabled() -> bool:
    """Return whether callbacks are left out of what this thread traces now."""
    return _disabled.value


def left_out(name: str, avals: tuple[Any, ...]) -> list[Any]:
    """Return placeholders for the results of the callback `name`; using them is an error."""
    return left_out_p.bind(name=name, avals=avals) if avals else []


def _refuse(name: str) -> NoReturn:
    __tracebackhide__ = True
    raise NotImplementedError(
        f"cannot leave out {name}: its result is used, and jaxcb.disabled() never makes up values. "
        "Compute the value in JAX, or move this code out of the with block."
    )


def _abstract_eval(*, name: str, avals: tuple[Any, ...]) -> tuple[Any, ...]:
    return avals


def _impl(*, name: str, avals: tuple[Any, ...]) -> NoReturn:
    _refuse(name)


def _lower(ctx: Any, *, name: str, avals: tuple[Any, ...]) -> NoReturn:
    _refuse(name)


left_out_p.def_abstract_eval(_abstract_eval)
left_out_p.def_impl(_impl)
jax_compat.mlir.register_lowering(left_out_p, _lower, cacheable=False)
