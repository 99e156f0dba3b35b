"""Make one host call on behalf of several devices, and fail on all of them if it fails.

Otherwise only the calling device would leave the program, and the others would wait for it in the
next collective, until XLA aborts the process after a minute. So the call also returns two numbers:
the number of the error (0 for success) and that of its process. Every device checks them before it
continues, and fails too. No operation gets the results of a failed call.

Numbers and results are packed into one array of bytes, because XLA wants one sharding annotation
for each result, and JAX's own callbacks have a single result here.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import jax_compat
from ...recording import Site
from ..errors import HostCallError, failed_on_another_device
from ._custom_call import emit_call

_FAILURE = jax_compat.shaped_array((2,), np.dtype(np.uint32))  # the error's number, its process

fail_p = jax_compat.Primitive("jaxcb_fail")
fail_p.multiple_results = True


def emit_for_all(
    ctx: Any,
    cross: Callable[..., tuple],
    operands: Sequence[Any],
    *,
    site: Site,
    token: Any,
    has_side_effect: bool,
    sharding: Any,
) -> list[Any]:
    """Emit a call that one of several devices makes for all, see `_custom_call.emit_call`.

    Args:
        ctx: JAX's lowering context.
        cross: takes NumPy arrays and returns a tuple of NumPy arrays; raises HostCallError.
        operands: IR values.
        site: the call site.
        token: the token of an ordered call; None for an unordered one.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        sharding: the device that calls, as the user passed it; None for the first.

    Returns:
        The new token (None if `token` is None), then the IR values of the results.
    """
    avals = tuple(ctx.avals_out)
    sizes = [aval.size * np.dtype(aval.dtype).itemsize for aval in (_FAILURE, *avals)]
    data_aval = jax_compat.shaped_array((sum(sizes),), np.dtype(np.uint8))
    packed = dataclasses.replace(ctx, avals_out=[data_aval])
    token, data = emit_call(
        packed,
        _packing(cross, sum(sizes)),
        operands,
        token=token,
        has_side_effect=has_side_effect,
        sharding=jax_compat.callback_sharding(ctx, sharding, [data_aval]),
    )
    success, *results = _check(
        ctx, data, data_aval, sizes, {"has_side_effect": has_side_effect, "site": site}
    )
    if token is not None:
        token = _token_after_check(ctx, token, success, sharding)
    return [token, *results]


def _token_after_check(ctx: Any, token: Any, success: Any, sharding: Any) -> Any:
    """Return a token for the next ordered call, which must not start if this one has failed.

    XLA starts an ordered call as soon as its token is available, without waiting for the check. So
    the token passes through a second call, whose operand is available only after a successful
    check.
    """
    waiting = dataclasses.replace(ctx, avals_in=[_FAILURE], avals_out=[])
    (token,) = emit_call(
        waiting,
        lambda number: (),
        [success],
        token=token,
        has_side_effect=True,
        sharding=jax_compat.callback_sharding(ctx, sharding, []),
    )
    return token


def _check(
    ctx: Any, data: Any, data_aval: Any, sizes: Sequence[int], params: dict[str, Any]
) -> list[Any]:
    """Unpack the error numbers and the results from `data`; each device fails on an error."""
    avals = (_FAILURE, *ctx.avals_out)

    def check(data: Any) -> list[Any]:
        pieces = jnp.split(data, list(itertools.accumulate(sizes))[:-1])
        failure, *results = map(_unpacked, pieces, avals)
        return jax.lax.cond(
            failure[0] == 0,
            lambda: [failure, *results],
            lambda: fail_p.bind(failure, avals=avals, **params),
        )

    mesh = jax.sharding.AbstractMesh((jax_compat.device_count(ctx),), ("device",))
    each = jax.sharding.PartitionSpec()
    on_each = jax.shard_map(check, mesh=mesh, in_specs=each, out_specs=each, check_vma=False)
    context = dataclasses.replace(
        ctx,
        avals_in=[data_aval],
        tokens_in=jax_compat.TokenSet(),
        tokens_out=None,
        jaxpr_eqn_ctx=None,
    )
    with jax_compat.without_mesh():
        return list(jax_compat.mlir.lower_fun(on_each)(context, data))


def lower_once(ctx: Any, axes: tuple[str, ...], bind: Callable, operands: Sequence[Any]) -> Any:
    """Lower ``bind(*operands)``, which returns nothing, for one of the devices along `axes`.

    `axes` are all mesh axes that are not manual; the operands are gathered along them first.
    """
    replicated = jax.sharding.PartitionSpec()

    def on_one(*whole: Any) -> list[Any]:
        return jax.lax.cond(jax.lax.axis_index(axes) == 0, bind, lambda *_: [], *whole)

    def everywhere(*operands: Any) -> list[Any]:
        gathered = [jax.sharding.reshard(x, replicated) for x in operands]
        return jax.shard_map(on_one, in_specs=replicated, out_specs=[], check_vma=False)(*gathered)

    return jax_compat.mlir.lower_fun(everywhere)(ctx, *operands)


def _packing(cross: Callable[..., tuple], size: int) -> Callable[..., tuple[np.ndarray]]:
    """Wrap `cross` to return one array of `size` bytes: the error numbers, then the results."""
    success, here = np.zeros(8, np.uint8), jax.process_index()

    def call(*operands: np.ndarray) -> tuple[np.ndarray]:
        try:
            results = [np.ascontiguousarray(array).reshape(-1) for array in cross(*operands)]
        except HostCallError as error:
            failed = np.zeros(size, np.uint8)
            failed[:8].view(np.uint32)[:] = error.number, here
            return (failed,)
        return (np.concatenate([success, *(array.view(np.uint8) for array in results)]),)

    return call


def _unpacked(data: Any, aval: Any) -> Any:
    """Return the array with the bytes `data`, in NumPy's layout."""
    dtype = np.dtype(aval.dtype)
    if dtype == np.bool_:
        return data.reshape(aval.shape) != 0
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = _unpacked(data, jax_compat.shaped_array((*aval.shape, 2), part))
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    if dtype.itemsize > 1:
        data = data.reshape(*aval.shape, dtype.itemsize)
        return jax.lax.bitcast_convert_type(data, dtype)
    # NumPy stores a 4-bit number in a byte of its own; XLA reads two numbers from a byte.
    numbers = jax.lax.bitcast_convert_type(data.reshape(aval.shape), dtype)
    return numbers if numbers.shape == aval.shape else numbers[..., 0]


def _abstract_eval(failure: Any, *, avals: tuple[Any, ...], **params: Any) -> tuple[Any, ...]:
    return avals


def _lower(
    ctx: Any, failure: Any, *, has_side_effect: bool, site: Site, **params: Any
) -> list[Any]:
    here = jax.process_index()

    def fail(failure: np.ndarray) -> Any:
        number, process = failure.tolist()
        raise failed_on_another_device(number, None if process == here else process, site)

    sharding = jax_compat.callback_sharding(ctx, None, ctx.avals_out)
    _, *results = emit_call(
        ctx, fail, [failure], has_side_effect=has_side_effect, sharding=sharding
    )
    return results


fail_p.def_abstract_eval(_abstract_eval)
jax_compat.mlir.register_lowering(fail_p, _lower, cacheable=False)
