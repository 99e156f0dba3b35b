"""The decorator of host functions that write into buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core import register, without_leading
from ..dispatch import BufferOptions
from ..flavors import bind_buffer, check_vmap_method
from ..results import MISSING, declared_result, result_interface
from ._callback import BufferCallback, check_function
from ._two_forms import in_two_forms, with_function


@in_two_forms
def buffer(
    function: Callable[..., None] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    has_side_effect: bool = False,
    check: bool = False,
) -> BufferCallback:
    """Registers a host function that writes into memory it is given; works as a decorator.

    Nothing is copied on the way in or out. The arrays it gets are borrowed for the length of one call:
    keep copies only, `RetainedBufferWarning` says where it holds on to them. Running its cell again
    swaps it as for `pure`.

    Args:
        function: called as ``function(out, *args)``: `out` is a pytree of writable numpy arrays as
            declared, of which it writes all; `args` are read-only ones. It returns None. On GPUs
            both are JAX's own buffers, for CuPy or PyTorch.
        result: what it writes: as for `pure`, but not ``"infer"``. If it is left out, a jaxtyping
            annotation of its first parameter says it: ``out: Float[Array, "n+1"]``.
        vmap_method: as for `pure`; with ``"sequential"`` each call gets the memory of its element.
        has_side_effect: call it exactly as often as the program says, its results used or not.
        check: raise if it does not write all of its outputs. They are filled with random bytes
            before; where these are still there it is called once more, unless it has side effects.

    Returns:
        A `BufferCallback`: call it in JAX code, without `out`; `defjvp` and `defvjp` give it
        derivatives.

    Raises:
        TypeError: `function` is not callable.
        ValueError: no `result`, or an unknown `vmap_method`.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.buffer(result="x")
    ... def add_one(out, x):
    ...     np.add(x, 1, out=out)
    >>> jax.jit(add_one)(np.float32([0.0, 3.0]))
    Array([1., 4.], dtype=float32)
    """
    __tracebackhide__ = True
    check_vmap_method(vmap_method)
    options = BufferOptions(vmap_method=vmap_method, has_side_effect=has_side_effect, check=check)
    return with_function(function, _register_buffer, result, options)


def _register_buffer(function: Any, result: Any, options: BufferOptions) -> BufferCallback:
    __tracebackhide__ = True
    check_function(function, "buffer")
    declared = declared_result(without_leading(function, 1), "buffer", result)
    host = register(function, ("buffer", result_interface(declared), options))
    bind = functools.partial(bind_buffer, host, declared, options=options)
    return BufferCallback("buffer", function, host, bind, options, declared=declared)
