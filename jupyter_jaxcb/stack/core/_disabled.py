"""disabled(): what is traced meanwhile has none of our callbacks in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import jax

from .. import jax_compat

# Part of the key of JAX's caches: a program traced in here is another than the one outside.
_disabled = jax.make_user_context(False)

left_out_p = jax_compat.Primitive("jaxcb_left_out")
left_out_p.multiple_results = True


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Leaves our callbacks out of what is traced: for `jax.export`, caching, timing.

    Those that return nothing are gone. One that returns something may stand in the program as long
    as nothing needs its result: no number is made up in its place.

    Raises:
        NotImplementedError: a result is needed; raised when the program is compiled, or at once
            by a call outside of jit.

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
    """Steps out of `disabled`, for runs that have to have the callbacks in them."""
    return _disabled(False)


def is_disabled() -> bool:
    """Whether callbacks are to be left out of what is traced now."""
    return _disabled.value


def left_out(name: str, avals: tuple[Any, ...]) -> list[Any]:
    """Stands for the results of the callback `name`, which nothing may need."""
    return left_out_p.bind(name=name, avals=avals) if avals else []


def _refuse(name: str) -> NoReturn:
    __tracebackhide__ = True
    raise NotImplementedError(
        f"cannot leave out {name}: its result is needed, and jaxcb.disabled() makes up no numbers. "
        "Compute it in JAX meanwhile, or leave the with block."
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
