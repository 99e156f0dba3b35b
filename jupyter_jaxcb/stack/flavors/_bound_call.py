"""A bind that JAX differentiates or transposes, as the rules of capabilities get it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from ... import jax_compat
from ...recording import AxisKind, VmapLevel
from .. import elision
from ..call import NO_STATIC, Bind, HostCallback, HostFunction, Static, is_array
from ..options import Options
from ..trace import find_frames

_SHARED = AxisKind.UNBATCHED, AxisKind.SIZE1  # by all batch elements
_Flat = Callable[[Sequence[Any]], list[Any]]  # of arrays, returns arrays


class BoundCall(NamedTuple):
    """A bind that JAX differentiates or transposes.

    Attributes:
        primitive: the primitive of its flavor.
        callback: its host callback.
        result_avals: its results.
        levels: the vmaps around it, innermost first.
        params: further static parameters of the primitive.
    """

    primitive: Any
    callback: HostCallback
    result_avals: Sequence[Any]
    levels: Sequence[VmapLevel]
    params: dict[str, Any]

    def value(self, operands: Sequence[Any], **changed: Any) -> list[Any]:
        """Make the call itself, beside its derivative: from here on, nobody may need its value.

        Args:
            operands: its operands.
            **changed: fields of the callback, see `HostCallback`.
        """
        __tracebackhide__ = True
        self.callback.bind.in_rule, self.callback.bind.is_replaced = True, False
        callback = dataclasses.replace(self.callback, **changed) if changed else self.callback
        return self._bound(operands, callback)

    def again(self, operands: Sequence[Any]) -> list[Any]:
        """Make one more call of its host function, with other operands."""
        __tracebackhide__ = True
        callback = dataclasses.replace(self.callback, bind=self._bind(self.callback.host))
        return self._bound(jax_compat.vary_together(operands), callback)

    def of_element(
        self,
        host: HostFunction,
        like: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: Options,
        behind: Sequence[Any],
    ) -> Any:
        """Call a host function for one batch element, at the call site of this call.

        Args:
            host: the host function.
            like: the avals of its result.
            args: positional arguments of the call, as in `bind`.
            kwargs: keyword arguments of the call.
            options: the options of the call.
            behind: the operands behind the arguments, of the same meaning as those of this call.
        """
        __tracebackhide__ = True
        leaves, in_tree = tree_flatten((args, kwargs))
        avals, out_tree = tree_flatten(like)
        arrays = [x for x in leaves if is_array(x)]
        static = {n: x for n, x in enumerate(leaves) if not is_array(x)}
        callback = dataclasses.replace(
            self.callback, host=host, in_tree=in_tree, out_tree=out_tree,
            options=options.with_operands_of(self.callback.options),
            bind=self._bind(host), static=Static(static, by_value=True) if static else NO_STATIC,
        )  # fmt: skip
        return tree_unflatten(
            out_tree,
            self.primitive.bind(
                *jax_compat.vary_together([*arrays, *behind]), callback=callback,
                result_avals=tuple(avals), levels=(), **self.params,
            ),
        )  # fmt: skip

    def by_elements(
        self,
        function: _Flat,
        arrays: Sequence[Any],
        axes_like: Sequence[int | None],
        returns_like: Sequence[int | None],
    ) -> list[Any]:
        """Return what a function of one batch element returns, mapped by the vmaps around the call.

        An array that a vmap does not map over, and that is returned, is the sum over its elements.

        Args:
            function: takes and returns arrays of one batch element.
            arrays: what it takes, of all elements.
            axes_like: for each of these, the operand whose axes it has; None: those of a result.
            returns_like: the same of what it returns.
        """
        for level in self.levels:
            kinds = [
                [AxisKind.BATCHED if n is None else level.axes[n] for n in like]
                for like in (axes_like, returns_like)
            ]
            function = functools.partial(_mapped, function, level.size, *kinds)
        return function(jax_compat.vary_together(arrays))

    def _bound(self, operands: Sequence[Any], callback: HostCallback) -> list[Any]:
        __tracebackhide__ = True
        return self.primitive.bind(
            *operands, callback=callback, result_avals=self.result_avals, levels=self.levels,
            **self.params,
        )  # fmt: skip

    def _bind(self, host: HostFunction) -> Bind:
        """Return the bind that a derivative makes now, at the call site of the call."""
        found, site = find_frames(), self.callback.bind.site
        bind = Bind(dataclasses.replace(site, function=host.name), found.around, in_rule=True)
        elision.bound(bind, found)
        return bind


def _mapped(
    function: _Flat,
    size: int,
    given: Sequence[AxisKind],
    returned: Sequence[AxisKind],
    arrays: Sequence[Any],
) -> list[Any]:
    """Map a function over the batch elements of one vmap, from which arrays have their axes."""
    elements = [
        x.squeeze(0) if kind is AxisKind.SIZE1 else x for x, kind in zip(arrays, given, strict=True)
    ]
    axes = [None if kind in _SHARED else 0 for kind in given]
    return [
        y.sum(0, dtype=y.dtype, keepdims=kind is AxisKind.SIZE1) if kind in _SHARED else y
        for y, kind in zip(
            jax.vmap(function, in_axes=(axes,), axis_size=size)(elements), returned, strict=True
        )
    ]
