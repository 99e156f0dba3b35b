"""One bind of a linear callback, as the rules of JAX get it, and further calls for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import PyTreeDef

from ... import jax_compat
from ...recording import VmapLevel
from ...stack.call import HostCallback
from ...stack.flavors import anew, bind_again
from ._linear import Arguments, Linear

Zero = jax_compat.ad.Zero
FLOAT0 = jax.dtypes.float0


class Bound(NamedTuple):
    """One bind of a linear callback, as the rules of JAX get it.

    Attributes:
        primitive: the primitive of its flavor.
        callback: its static parameter.
        result_avals: its results, below the vmaps.
        levels: the vmaps around it.
        params: further static parameters of the primitive.
    """

    primitive: jax_compat.Primitive
    callback: HostCallback
    result_avals: Sequence[Any]
    levels: Sequence[VmapLevel]
    params: dict[str, Any]

    @property
    def linear(self) -> Linear:
        """What is known of its host function."""
        return self.callback.host.derivative

    def again(self, operands: Sequence[Any]) -> list[Any]:
        """Bind it with other operands."""
        callback = dataclasses.replace(self.callback, bind=anew(self.callback))
        return self.primitive.bind(
            *jax_compat.vary_together(list(operands)),
            callback=callback,
            result_avals=self.result_avals,
            levels=self.levels,
            **self.params,
        )

    def call(
        self,
        linear: Linear,
        arguments: Arguments,
        vectors: Any,
        out: tuple[Sequence[Any], PyTreeDef],
    ) -> Any:
        """Bind a call for one batch element.

        Args:
            linear: its function, or the transpose of that.
            arguments: its arguments, of which the linear ones are replaced.
            vectors: what replaces them, as in `Arguments`.
            out: flat avals and structure of the result.
        """
        __tracebackhide__ = True
        args, kwargs = linear.call(arguments.others, vectors)
        return bind_again(
            self.primitive, self.callback, linear.host, out, args, kwargs, linear.options,
            behind=arguments.behind, **self.params,
        )  # fmt: skip


def bound_of(
    primitive: jax_compat.Primitive,
    *,
    callback: HostCallback,
    result_avals: Sequence[Any],
    levels: Sequence[VmapLevel],
    **params: Any,
) -> Bound:
    """Return a bind from the arguments of a rule."""
    return Bound(primitive, callback, result_avals, levels, params)


def tangent_of(result: Any, tangent: Any) -> Any:
    """Return the tangent of a result; that of an integer is a zero of JAX's."""
    if jnp.issubdtype(result.dtype, jnp.inexact):
        return tangent
    return Zero(jax.typeof(result).to_tangent_aval())
