"""The tap flavor: an identity that calls the host; under vmap one call gets the whole batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.tree_util import tree_structure, tree_unflatten

from .... import jax_compat
from ....recording import WHOLE_BATCH, VmapLevel
from ...call import HostFunction, to_array
from ...options import Options
from .. import bind, with_axes_in_front
from ._barrier import barrier_at_exit
from ._effect import DEVICE, TAP, TRANSFORMS, InOrder

# The transformations of a tap, innermost first: the name, and for vmap the batch dimensions of the
# operands.
Transforms = tuple[tuple[str, tuple[int | None, ...] | None], ...]


class Tap(InOrder):
    """An identity: unlike debug callbacks, a tap returns its operands, as transposition needs."""

    name = "tap"
    postpones = True

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """Return the types of the operands."""
        return list(avals), {TAP}

    def call(self, *args: Any, **params: Any) -> list[Any]:
        """Make an eager call, and pass the operands on."""
        return super().call(*args, **params) or [to_array(x) for x in args]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        """Call with the primal values."""
        return self.primitive.bind(*primals, **params), list(tangents)

    def transpose(
        self, cotangents: Any, *args: Any, transforms: Transforms, **params: Any
    ) -> list[Any]:
        """Call with the cotangents."""
        linear = [jax_compat.ad.is_undefined_primal(x) for x in args]
        given = [
            jax_compat.ad.instantiate_zeros(cotangent) if on else jnp.zeros_like(x)
            for cotangent, x, on in zip(cotangents, args, linear, strict=True)
        ]
        transforms = (*transforms, ("transpose", None))
        outs = self.primitive.bind(*given, transforms=transforms, **params)
        return [out if on else None for out, on in zip(outs, linear, strict=True)]

    def batch(
        self,
        args: Any,
        dims: Any,
        *,
        transforms: Transforms,
        levels: tuple[VmapLevel, ...],
        axes_in_front: bool,
        axis_name: str,
        **params: Any,
    ) -> Any:
        """Call once with the whole batch."""
        (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
        batched = tuple(dim is not None for dim in dims)
        if axes_in_front:
            args, dims = with_axes_in_front(args, dims), [0 if on else None for on in batched]
        outs = self.primitive.bind(
            *args,
            transforms=(*transforms, ("batch", tuple(dims))),
            levels=(*levels, VmapLevel(size, WHOLE_BATCH, batched, axis_name)),
            axes_in_front=axes_in_front,
            **params,
        )
        return outs, dims

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        """Emit a host call that returns nothing."""
        silent = dataclasses.replace(ctx, avals_out=[])
        super().lower(silent, *operands, **params)
        ctx.set_tokens_out(silent.tokens_out)
        return operands

    def disabled(self, name: str, arrays: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
        """Return the operands."""
        return [to_array(x) for x in arrays]


TAPS = Tap()


def bind_tap(
    host: HostFunction,
    arg: Any,
    options: Options,
    *,
    with_device: bool = False,
    device_index: int = 0,
    axes_in_front: bool = False,
) -> Any:
    """Bind one tap.

    Args:
        host: the host function.
        arg: a pytree of arrays, passed as NumPy arrays.
        options: the options of the callback.
        with_device: whether the host function gets the keyword ``device``.
        device_index: see `host_callback.id_tap`.
        axes_in_front: whether batch axes come first, outermost first; else they stay where the
            program has them.

    Returns:
        `arg` as JAX arrays.
    """
    __tracebackhide__ = True
    barrier_at_exit()
    jax_compat.hold_finished_elements(TAPS.primitive)
    outs = bind(
        TAPS,
        host,
        (arg, TRANSFORMS) if options.transforms else (arg,),
        {"device": DEVICE} if with_device else {},
        options,
        transforms=(),
        device_index=device_index,
        axes_in_front=axes_in_front,
    )
    return tree_unflatten(tree_structure(arg), outs)
