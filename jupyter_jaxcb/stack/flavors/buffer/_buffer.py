"""The buffer flavor: the host function writes its results into XLA's memory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves

from .... import jax_compat
from ....recording import VmapLevel
from ...call import HostCallback, HostFunction, is_array, without_leading
from ...dispatch import Build
from ...lowering import HOST_MEMORY
from ...options import Options, checked
from ...results import result_avals as declared
from .. import KEPT, Flavor, bind
from ._borrowed_memory import check_aliases, check_borrowable
from ._crossing import WITH_CONTEXT, WITHOUT_CONTEXT, build_eager_crossing
from ._lowering import lower_buffer_call


class BufferFlavor(Flavor):
    """The host function writes its results; with side effects, every call is kept."""

    name = "buffer"
    fresh = True
    in_loops = False

    def effects(self, options: Options) -> set[jax_compat.Effect]:
        """Return the effect of those with side effects."""
        return {KEPT} if options.has_side_effect else set()

    def build(self, *, is_eager: bool, **params: Any) -> Build:
        """Return what builds a crossing outside a program."""
        return build_eager_crossing

    def call(self, *args: Any, **params: Any) -> Any:
        """Make an eager call; only a compiled program can lend GPU memory."""
        if jax.default_backend() not in HOST_MEMORY:
            return jax_compat.apply_primitive(self.primitive, *args, **params)
        return super().call(*args, **params)

    def batch(self, args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> Any:
        """Batch operands that share memory with a result, too: the result has the batch axis."""
        __tracebackhide__ = True
        (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
        args, dims = list(args), list(dims)
        for operand, _ in callback.options.input_output_aliases:
            if dims[operand] is None:
                args[operand], dims[operand] = jax.lax.broadcast(args[operand], (size,)), 0
        return super().batch(args, dims, callback=callback, **params)

    def lower(
        self, ctx: Any, *operands: Any, callback: HostCallback, levels: Any, **params: Any
    ) -> Any:
        """Emit the custom call, or a loop of the program around it."""
        in_host_memory = ctx.module_context.platforms[0] in HOST_MEMORY
        looped = any(level.looped for level in levels)
        if not in_host_memory and (callback.options.masked or looped):
            by_program = _by_program(callback, levels, **params)
            return jax_compat.mlir.lower_fun(by_program)(ctx, *operands)
        return lower_buffer_call(ctx, *operands, callback=callback, levels=levels)


BUFFER = BufferFlavor()


def _by_program(
    callback: HostCallback,
    levels: tuple[VmapLevel, ...],
    result_avals: Sequence[Any],
    **params: Any,
) -> Callable[..., Any]:
    """Return a function that loops over batch elements and looks at the mask in the program.

    NumPy can do neither in GPU memory.
    """
    looped = [level.batched for level in levels if level.looped]
    left = tuple(level for level in levels if not level.looped)
    options = callback.options
    if options.masked:
        left = tuple(level._replace(batched=level.batched[:-1]) for level in left)
    shaped = jax_compat.shaped_array
    avals = tuple(shaped(a.shape[len(looped) :], a.dtype) for a in result_avals)
    call: Callable[..., Any] = functools.partial(
        BUFFER.primitive.bind,
        callback=dataclasses.replace(callback, options=dataclasses.replace(options, masked="")),
        levels=left,
        result_avals=avals,
        **params,
    )
    if options.masked:
        call = functools.partial(_if_any, call, avals)
    return functools.reduce(_mapped, looped, call)


def _if_any(call: Callable[..., Any], avals: Sequence[Any], *args: Any) -> Any:
    """Apply `call` to all but the last argument, a mask, if it is true anywhere; else zeros."""
    *operands, mask = args
    return jax.lax.cond(
        jnp.any(mask), call, lambda *_: [jnp.zeros(a.shape, a.dtype) for a in avals], *operands
    )


def _mapped(call: Callable[..., Any], batched: Sequence[bool]) -> Callable[..., Any]:
    """Return a function that applies `call` to each row of the `batched` arguments in turn."""

    def over_rows(*args: Any) -> Any:
        def one(rows: tuple[Any, ...]) -> Any:
            left = iter(rows)
            return call(*(next(left) if on else x for x, on in zip(args, batched, strict=True)))

        return jax.lax.map(one, tuple(x for x, on in zip(args, batched, strict=True) if on))

    return over_rows


def bind_buffer(
    host: HostFunction,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    leading: int = WITHOUT_CONTEXT,
    mask: Any = None,
) -> Any:
    """Bind one call of a buffer callback; return a pytree of the declared structure.

    With a mask, a boolean scalar, the results are zero where it is false.
    """
    __tracebackhide__ = True
    function = host.current
    if isinstance(result, str):  # an expression over its parameters
        function = without_leading(function, leading)
    out = declared(result, function, args, kwargs)
    operands = [jax.typeof(x) for x in tree_leaves((args, kwargs)) if is_array(x)]
    check_borrowable(host.name, [*operands, *out[0]])
    check_aliases(options.input_output_aliases, operands, out[0])
    return bind(BUFFER, host, args, kwargs, options, out, mask=mask, leading=leading)


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
    check: bool = False,
) -> Callable[..., Any]:
    """Call a Python function that writes its results into XLA's memory.

    The signature is that of `jax.experimental.buffer_callback`. Nothing is copied on the way
    in or out: the host function borrows XLA's memory, which is valid only during the call. Copy
    what you keep; a `RetainedBufferWarning` names arrays that are still referenced afterwards.

    Args:
        callback: the host function, called as ``callback(context, out, *args, **kwargs)``. `out`
            is a pytree of writable NumPy arrays of the declared shapes and dtypes, and `args` are
            read-only NumPy arrays. They have what JAX's buffers have besides, `writeable`. On GPUs
            both are JAX's own buffers, for CuPy or PyTorch. It must write all of `out` and return
            None. `context` is XLA's execution context: on GPUs,
            ``context.stream`` is the stream to enqueue work on.
        result_shape_dtypes: a pytree whose leaves have ``shape`` and ``dtype``, or an expression
            over the parameter names of `callback` (``"x"``).
        has_side_effect: keep every call the program makes, even if its results are unused.
        vmap_method: as for `pure_callback`.
        input_output_aliases: maps the index of a flat input to the index of the flat output that
            shares its memory and starts with its values.
        command_buffer_compatible: on GPUs, call the host function once and replay the work it
            enqueued.
        check: raise if the host function leaves part of its outputs unwritten. The outputs are
            filled with random bytes first; where these remain, the function is called once more
            to confirm, unless it has side effects.

    Returns:
        A function of pytrees of arrays that returns arrays as declared.

    Raises:
        ValueError: if `vmap_method` is unknown, an alias does not match in shape and dtype, a
            64-bit result is declared while x64 is off, or the platform is neither CPU nor GPU.
        TypeError: if a dtype is narrower than a byte or a PRNG key. Convert to int8, or pass
            ``jax.random.key_data(key)``.
        NotImplementedError: under vmap without a `vmap_method`, or with side effects in a program
            over several devices.
        jax.errors.JaxRuntimeError: if the host function raised, or returned something other than
            None. `jupyter_jaxcb.host_error` returns the original exception.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> def add_one(context, out, x):
    ...     np.add(x, 1, out=out)
    >>> x = np.float32([0.0, 3.0])
    >>> jax.jit(jaxcb.buffer_callback(add_one, x))(x)
    Array([1., 4.], dtype=float32)
    """
    __tracebackhide__ = True
    host = HostFunction(callback)
    aliases = sorted((int(x), int(out)) for x, out in (input_output_aliases or {}).items())
    options = checked(
        "buffer", drop_in=True, vmap_method=vmap_method, has_side_effect=has_side_effect,
        check=check, input_output_aliases=tuple(aliases),
        command_buffer_compatible=command_buffer_compatible,
    )  # fmt: skip

    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return bind_buffer(host, result_shape_dtypes, args, kwargs, options, WITH_CONTEXT)

    return call
