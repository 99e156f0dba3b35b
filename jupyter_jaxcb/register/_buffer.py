"""The ``buffer`` decorator, for host functions that write into XLA's memory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..capabilities.compiled import register_compiled
from ..capabilities.linear import linear_in
from ..stack.call import plain_signature, register, without_leading
from ..stack.flavors.buffer import bind_buffer
from ..stack.options import Options, checked
from ..stack.results import MISSING, declared_result, result_interface
from ._callback import RuledCallback, check_function
from ._two_forms import in_two_forms, with_function


class BufferCallback(RuledCallback):
    """A registered host function that writes its results into buffers."""

    _leading = 1

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature without the buffers, which JAX code does not pass."""
        return plain_signature(without_leading(self.__wrapped__, self._leading))


@in_two_forms
def buffer(
    function: Callable[..., None] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    linear: str | Sequence[str] | None = None,
    linear_self_adjoint: bool = False,
    has_side_effect: bool = False,
    check: bool = False,
    compile: str | None = None,
    rematerialize: bool = True,
) -> BufferCallback:
    """Register a host function that writes into XLA's memory; works as a decorator.

    Nothing is copied on the way in or out: the host function borrows XLA's memory, which is valid
    only during the call. Copy what you keep; a `RetainedBufferWarning` names arrays that are still
    referenced afterwards. As with `pure`, rerunning the cell replaces the function.

    Args:
        function: called as ``function(out, *args)``. `out` is a pytree of writable NumPy arrays of
            the declared shapes and dtypes, and `args` are read-only NumPy arrays; on GPUs both are
            JAX's own buffers, for CuPy or PyTorch. It must write all of `out` and return None.
        result: the shapes and dtypes that it writes: as for `pure`, except ``"infer"``. If omitted,
            a jaxtyping annotation of its first parameter is used: ``out: Float[Array, "n+1"]``.
        vmap_method: as for `pure`; with ``"sequential"`` each call gets the memory of its element.
        linear: as for `pure`. A transpose writes, too: ``transposed(out, a, cotangent)``.
        linear_self_adjoint: as for `pure`.
        has_side_effect: keep every call the program makes, even if its results are unused.
        check: raise if the host function leaves part of its outputs unwritten. The outputs are
            filled with random bytes first; where these remain, the function is called once more
            to confirm, unless it has side effects.
        compile: as for `pure`.
        rematerialize: as for `pure`; with `has_side_effect`, as for `io`.

    Returns:
        A `BufferCallback`. Call it in JAX code, without `out`; `defjvp` and `defvjp` define its
        derivative.

    Raises:
        TypeError: if `function` is not callable.
        ValueError: if `result` is missing, `vmap_method` or `compile` is unknown, or options
            cannot be combined; the message says what to write instead.
        ImportError: if `compile` is given and numba is not installed.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.buffer(result="x")
    ... def add_one(out, x):
    ...     np.add(x, 1, out=out)
    >>> jax.jit(add_one)(np.float32([0.0, 3.0]))
    Array([1., 4.], dtype=float32)
    """
    __tracebackhide__ = True
    options = checked(
        "buffer", vmap_method=vmap_method, linear=linear, linear_self_adjoint=linear_self_adjoint,
        has_side_effect=has_side_effect, check=check, compile=compile,
        rematerialize=rematerialize,
    )  # fmt: skip
    return with_function(function, _register_buffer, result, options)


def _register_buffer(function: Any, result: Any, options: Options) -> BufferCallback:
    __tracebackhide__ = True
    check_function(function, "buffer")
    declared = declared_result(without_leading(function, 1), "buffer", result)
    host = register(function, (result_interface(declared), options))
    if options.compile:
        register_compiled(host)
    if options.linear:
        linear_in(host, options, leading=1)
    bind = functools.partial(bind_buffer, host, declared, options=options)
    return BufferCallback(function, host, bind, options, declared=declared)
