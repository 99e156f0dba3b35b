"""One host call on behalf of several devices, whose failure all of them learn of.

The device that calls would otherwise leave the program alone, and the others would wait for it in
the next collective: XLA gives up after a minute, by aborting the process. So the call answers with
two numbers as well: 0, or that of the error, and that of its process. Every device looks at them
before it goes on, and fails too. No operation ever sees the results of a call that failed.

Numbers and results come as one array of bytes: XLA places a call by one annotation a result, and
JAX's own has one result here.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...recording import Site
from .. import jax_compat
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
    """As `_custom_call.emit_call`, for a call that one of several devices makes for all.

    Args:
        ctx: JAX's lowering context.
        cross: numpy arrays in, a tuple of numpy arrays out; raises HostCallError.
        operands: IR values.
        site: of the call.
        token: the token that an ordered call takes; None for an unordered one.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        sharding: the device that calls, as the user has it; None for the first.

    Returns:
        The token that comes back (None for None), and the IR values of the results.
    """
    avals = tuple(ctx.avals_out)
    sizes = [aval.size * np.dtype(aval.dtype).itemsize for aval in (_FAILURE, *avals)]
    buffer = jax_compat.shaped_array((sum(sizes),), np.dtype(np.uint8))
    packed = dataclasses.replace(ctx, avals_out=[buffer])
    token, answer = emit_call(
        packed,
        _packing(cross, sum(sizes)),
        operands,
        token=token,
        has_side_effect=has_side_effect,
        sharding=jax_compat.callback_sharding(ctx, sharding, [buffer]),
    )
    went_well, *results = _look(
        ctx, answer, buffer, sizes, {"has_side_effect": has_side_effect, "site": site}
    )
    if token is not None:
        token = _handed_on(ctx, token, went_well, sharding)
    return [token, *results]


def _handed_on(ctx: Any, token: Any, went_well: Any, sharding: Any) -> Any:
    """`token`, for the next ordered call, which is not to be made if this one has failed.

    XLA starts a call once its token is there. The look at the number is not on that way, so the
    token takes one more, which has what only a good look gives as its operand.
    """
    waiting = dataclasses.replace(ctx, avals_in=[_FAILURE], avals_out=[])
    (token,) = emit_call(
        waiting,
        lambda number: (),
        [went_well],
        token=token,
        has_side_effect=True,
        sharding=jax_compat.callback_sharding(ctx, sharding, []),
    )
    return token


def _look(
    ctx: Any, answer: Any, buffer: Any, sizes: Sequence[int], told: dict[str, Any]
) -> list[Any]:
    """Every device looks at what is in front of `answer`; that and the results, or it fails."""
    avals = (_FAILURE, *ctx.avals_out)

    def look(answer: Any) -> list[Any]:
        pieces = jnp.split(answer, list(itertools.accumulate(sizes))[:-1])
        failure, *results = map(_unpacked, pieces, avals)
        return jax.lax.cond(
            failure[0] == 0,
            lambda: [failure, *results],
            lambda: fail_p.bind(failure, avals=avals, **told),
        )

    mesh = jax.sharding.AbstractMesh((jax_compat.device_count(ctx),), ("device",))
    each = jax.sharding.PartitionSpec()
    looking = jax.shard_map(look, mesh=mesh, in_specs=each, out_specs=each, check_vma=False)
    context = dataclasses.replace(
        ctx, avals_in=[buffer], tokens_in=jax_compat.TokenSet(), tokens_out=None
    )
    if hasattr(context, "jaxpr_eqn_ctx"):  # JAX 0.8 would set the mesh of the equation again
        context = dataclasses.replace(context, jaxpr_eqn_ctx=None)
    with jax_compat.without_mesh():
        return list(jax_compat.mlir.lower_fun(looking)(context, answer))


def lower_once(ctx: Any, axes: tuple[str, ...], bind: Callable, operands: Sequence[Any]) -> Any:
    """Lowers ``bind(*operands)``, which returns nothing, for one device among those along `axes`.

    Which are all that is not manual yet: the operands are gathered along them first.
    """
    replicated = jax.sharding.PartitionSpec()

    def on_one(*whole: Any) -> list[Any]:
        return jax.lax.cond(jax.lax.axis_index(axes) == 0, bind, lambda *_: [], *whole)

    def everywhere(*operands: Any) -> list[Any]:
        gathered = [jax.sharding.reshard(x, replicated) for x in operands]
        return jax.shard_map(on_one, in_specs=replicated, out_specs=[], check_vma=False)(*gathered)

    return jax_compat.mlir.lower_fun(everywhere)(ctx, *operands)


def _packing(cross: Callable[..., tuple], size: int) -> Callable[..., tuple[np.ndarray]]:
    """`cross` with all it answers as one array of `size` bytes, and numbers for an exception."""
    well, here = np.zeros(8, np.uint8), jax.process_index()

    def call(*operands: np.ndarray) -> tuple[np.ndarray]:
        try:
            answer = [np.ascontiguousarray(array).reshape(-1) for array in cross(*operands)]
        except HostCallError as error:
            failed = np.zeros(size, np.uint8)
            failed[:8].view(np.uint32)[:] = error.number, here
            return (failed,)
        return (np.concatenate([well, *(array.view(np.uint8) for array in answer)]),)

    return call


def _unpacked(data: Any, aval: Any) -> Any:
    """The array that the bytes `data` spell, as numpy lays it out."""
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
    # Numpy gives 4 bits a byte of their own; XLA makes two numbers of a byte.
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
