"""Reduce values to a few numbers on the device, and send those of bad values to the host."""

from __future__ import annotations

import dataclasses
import functools
import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...recording import on_one_line
from ._note import Condition, Options
from ._received import Facts, receive_bad

MOST_ELEMENTS = 16  # of a batch, of which each has a row
_MOST_VALUES = 8  # of an array, which are sent too
_FEW = 1024  # values, of which a loop without vector instructions is as quick
MOST_SUMMED = 4096  # values that are copied to be summed together with others
NUMBERS = ("sum", "min", "max", "nan", "inf", "finite")


@dataclasses.dataclass(frozen=True, eq=False)
class BadCall:
    """What XLA calls with the numbers of one bad value, then those of the inputs."""

    facts: Facts

    def __call__(self, numbers: np.ndarray, steps: np.ndarray) -> tuple:
        receive_bad(self.facts, numbers.tolist(), steps.tolist())
        return ()


class Layout(NamedTuple):
    """What the operands of a note are: the value, its inputs, the steps, and maybe the mask.

    Attributes:
        inputs, loops: how many operands are inputs and steps.
        conditional: whether the last one is the mask.
        axes: for each operand, the axes of the vmap levels, innermost first; None: unbatched.
        sizes: of the vmap levels, innermost first.
    """

    inputs: int
    loops: int
    conditional: bool
    axes: tuple[Any, ...]
    sizes: tuple[int, ...]

    @property
    def own(self) -> tuple[int | None, ...]:
        """The axes of the value."""
        return self.axes[0]

    @property
    def has_mask(self) -> bool:
        """Whether the mask differs between batch elements; otherwise the branch is taken."""
        return self.conditional and any(a is not None for a in self.axes[-1])

    def of_value(self) -> tuple[Layout, list[int]]:
        """Return the layout of the value and the mask alone, and which operands they are."""
        places = [0, -1] if self.has_mask else [0]
        axes = tuple(self.axes[at] for at in places)
        return Layout(0, 0, self.has_mask, axes, self.sizes), places

    def parts(self, arrays: Sequence[Any]) -> Parts:
        """Split the operands."""
        first, last = 1 + self.inputs, 1 + self.inputs + self.loops
        steps = [
            _by_element(lambda x, axis: x, x, axes, self.sizes).astype(np.int32)
            for x, axes in zip(arrays[first:last], self.axes[first:], strict=False)
        ]
        mask = None
        if self.has_mask:
            mask = _by_element(lambda x, axis: x, arrays[-1], self.axes[-1], self.sizes)
        count = math.prod(self.sizes)
        stacked = jnp.stack(steps, axis=-1) if steps else jnp.zeros((count, 0), np.int32)
        return Parts(arrays[0], arrays[1:first], stacked, mask)


class Parts(NamedTuple):
    """The operands of a note, with one entry of the steps and the mask for each batch element."""

    value: Any
    inputs: Sequence[Any]
    steps: Any
    mask: Any


# These are jitted so that a program has one function for all values of a shape, and JAX traces it
# once.
@functools.partial(jax.jit, static_argnums=(0, 1))
def is_suspect(bad: Condition, layout: Layout, *arrays: Any) -> Any:
    """Return whether a value can be bad.

    One sum tells whether all values are finite, which is the quickest of all tests: XLA computes
    it with vector instructions. It can be infinite without.
    """
    parts = layout.parts(arrays)
    if not bad.is_finite:
        return jnp.any(bad.test(parts.value))
    if parts.mask is None:
        return jnp.logical_not(jnp.isfinite(jnp.sum(_real(parts.value))))
    return jnp.logical_not(jnp.all(_is_finite(_sum(parts.value, layout), parts.mask)))


def sign_of(bad: Condition, layout: Layout, *arrays: Any) -> Any:
    """Return whether a value can be bad, or a few values whose sum is not finite if it can."""
    value, *mask = arrays
    if (
        mask
        or value.size > MOST_SUMMED
        or value.dtype not in (np.float32, np.float16, jnp.bfloat16)
    ):
        return is_suspect(bad, layout, *arrays)
    return _real(value).reshape(-1)


def _sum(value: Any, layout: Layout) -> Any:
    return _by_element(jnp.sum, _real(value), layout.own, layout.sizes)


def _is_finite(total: Any, mask: Any) -> Any:
    return jnp.isfinite(total) if mask is None else jnp.isfinite(total) | ~mask


def send_if_bad(send: Callable[..., Any], facts: Facts, layout: Layout, *arrays: Any) -> list:
    """Reduce a value and its inputs, and send their numbers to the host, if it is bad."""
    return jax.lax.cond(
        is_suspect(facts.note.options.bad, layout, *arrays),
        lambda *arrays: _send_bad(send, facts, layout, arrays), lambda *_: [], *arrays,
    )  # fmt: skip


@functools.partial(jax.jit, static_argnums=(0, 1))
def numbers_in(options: Options, layout: Layout, *arrays: Any) -> Any:
    """Return what is sent of a value: one array of 32-bit integers for each batch element.

    They are the bits of its numbers, and the steps.
    """
    parts = layout.parts(arrays)
    x, axes, sizes = _real(parts.value), layout.own, layout.sizes
    total = _sum(parts.value, layout)
    if x.size <= _FEW:
        numbers = _numbers(x, axes, sizes)
    else:
        numbers = jax.lax.cond(
            jnp.all(_is_finite(total, parts.mask)), lambda x: _of_finite(x, total, axes, sizes),
            lambda x: _numbers(x, axes, sizes), x,
        )  # fmt: skip
    return _packed(options, numbers, axes, sizes, parts)


def rarely(
    every: int, send: Callable[[Any], list], options: Options, layout: Layout, *arrays: Any
) -> list:
    """Send the numbers of a value in every `every`-th step of the innermost loop."""
    parts = layout.parts(arrays)
    turns = parts.steps[:, -1] % every == 0
    turn = jnp.any(turns if parts.mask is None else turns & parts.mask)
    return jax.lax.cond(
        turn, lambda *arrays: send(numbers_in(options, layout, *arrays)), lambda *_: [], *arrays
    )


def _send_bad(send: Any, facts: Facts, layout: Layout, arrays: Sequence[Any]) -> list:
    """Send the first batch element that is bad, if one is."""
    parts, axes, sizes = layout.parts(arrays), layout.axes, layout.sizes
    is_bad = facts.note.options.bad.test
    bad = _by_element(jnp.any, is_bad(parts.value), axes[0], sizes)
    bad = bad if parts.mask is None else bad & parts.mask
    element = jnp.argmax(bad)

    def details(*arrays: Any) -> list:
        wanted = []
        for x, of in zip(arrays, axes, strict=False):
            found = _by_element(jnp.any, is_bad(x), of, sizes)
            wanted.append(jnp.append(_numbers(_real(x), of, sizes)[element], found[element]))
        wide = jnp.result_type(*wanted)
        numbers = jnp.concatenate([part.astype(wide) for part in wanted])
        at = jnp.append(element.astype(np.int32), parts.steps[element])
        return send(numbers, at, call=call)

    call = BadCall(facts)
    return jax.lax.cond(jnp.any(bad), details, lambda *_: [], parts.value, *parts.inputs)


def _real(x: Any) -> Any:
    """Return real values of 32 or 64 bits; of complex values, the absolute ones."""
    x = jnp.abs(x) if jnp.iscomplexobj(x) else x
    return x if x.dtype == np.float64 else x.astype(np.float32)


def _by_element(reduce: Callable[..., Any], x: Any, axes: Any, sizes: Any) -> Any:
    """Reduce all axes but those of the batch; return one number for each batch element."""
    return _in_order(reduce(x, axis=_rest(x, axes)), axes, sizes)


def _rest(x: Any, axes: Any) -> tuple[int, ...]:
    return tuple(a for a in range(x.ndim) if a not in axes)


def _in_order(reduced: Any, axes: Any, sizes: Any) -> Any:
    order = sorted(a for a in axes if a is not None)
    outer_first = [(a, size) for a, size in zip(axes, sizes, strict=True)][::-1]
    moved = reduced.transpose([order.index(a) for a, _ in outer_first if a is not None])
    shape = [1 if a is None else size for a, size in outer_first]
    return jnp.broadcast_to(moved.reshape(shape), [size for _, size in outer_first]).reshape(-1)


def _of_finite(x: Any, total: Any, axes: Any, sizes: Any) -> Any:
    """Return the numbers of values that are finite."""
    least, most = (_by_element(reduce, x, axes, sizes) for reduce in (jnp.min, jnp.max))
    none = jnp.zeros_like(total)
    count = jnp.full_like(total, x.size // max(1, math.prod(_batch(axes, sizes))))
    return jnp.stack([total, least, most, none, none, count], axis=-1)


def _batch(axes: Any, sizes: Any) -> list[int]:
    return [size for a, size in zip(axes, sizes, strict=True) if a is not None]


def _numbers(x: Any, axes: Any, sizes: Any) -> Any:
    """Return sum, minimum and maximum of the finite values, and how many are NaN, inf, finite.

    One reduction has all six, because XLA compiles each on its own. It does not use vector
    instructions.
    """
    finite = jnp.isfinite(x)
    floats = [jnp.where(finite, x, other) for other in (0, jnp.inf, -jnp.inf)]
    counts = [one.astype(np.int32) for one in (jnp.isnan(x), jnp.isinf(x), finite)]
    none = [*(x.dtype.type(one) for one in (0, np.inf, -np.inf)), *(np.int32(0),) * 3]
    found = jax.lax.reduce([*floats, *counts], none, _together, _rest(x, axes))
    return jnp.stack([_in_order(one.astype(x.dtype), axes, sizes) for one in found], axis=-1)


def _together(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    combine = jax.lax.add, jax.lax.min, jax.lax.max, *(jax.lax.add,) * 3
    return [each(a, b) for each, a, b in zip(combine, some, others, strict=True)]


@functools.partial(jax.jit, static_argnums=1)
def numbers_of(x: Any, options: Options) -> tuple[Any, Any]:
    """Return the numbers of an array that no program computes any more, and whether it is bad."""
    return numbers_in(options, Layout(0, 0, False, ((),), ()), x), jnp.any(options.bad.test(x))


def _packed(options: Options, numbers: Any, axes: Any, sizes: Any, parts: Parts) -> Any:
    """Return the bits of the numbers, and the steps, in one array; of many elements, together."""
    steps = parts.steps
    if parts.mask is not None:
        nothing = jnp.array([0, jnp.inf, -jnp.inf, 0, 0, 0], numbers.dtype)
        numbers = jnp.where(parts.mask[:, None], numbers, nothing)
    for name, reduce in options.reductions:
        own = _by_element(functools.partial(_number_by, name, reduce), parts.value, axes, sizes)
        own = own if parts.mask is None else jnp.where(parts.mask, own, jnp.nan)
        numbers = jnp.append(numbers, own[:, None].astype(numbers.dtype), axis=1)
    if values_sent(parts.value.shape, sizes):
        numbers = jnp.append(numbers, _real(parts.value).reshape(1, -1), axis=1)
    if len(numbers) > MOST_ELEMENTS:
        total, least, most, nan, inf, finite, *others = numbers.T
        together = [
            jnp.sum(total),
            jnp.min(least),
            jnp.max(most),
            *map(jnp.sum, (nan, inf, finite)),
        ]
        means = [jnp.mean(own, where=parts.mask) for own in others]
        numbers = jnp.stack([*together, *means])[None]
        steps = jnp.max(steps, axis=0)[None]
    bits = jax.lax.bitcast_convert_type(numbers, np.int32).reshape(len(numbers), -1)
    return jnp.concatenate([bits, steps.astype(np.int32)], axis=1)


def values_sent(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """Return how many values are sent with the numbers: those of small arrays outside of vmap."""
    count = math.prod(shape)
    return count if not sizes and 1 < count <= _MOST_VALUES else 0


def _number_by(name: str, reduce: Callable[[Any], Any], x: Any, axis: Sequence[int]) -> Any:
    """Return the user's number of each batch element, whose axes are the others than `axis`."""
    batch = [a for a in range(x.ndim) if a not in axis]
    sizes = [x.shape[a] for a in batch]
    flat = x.transpose([*batch, *axis]).reshape(math.prod(sizes), *(x.shape[a] for a in axis))
    return jax.vmap(functools.partial(_checked, name, reduce))(flat).reshape(sizes)


def _checked(name: str, reduce: Callable[[Any], Any], x: Any) -> Any:
    """Return the user's number of an array."""
    given = on_one_line(f"{name}={getattr(reduce, '__name__', type(reduce).__name__)}")
    try:
        found = reduce(x)
    except Exception as error:
        error.add_note(f"raised by {given} of watching(), for an array of shape {x.shape}")
        raise
    cause = None
    try:
        aval = jax.typeof(found)
        is_complex = jnp.issubdtype(aval.dtype, np.complexfloating)
        is_key = jnp.issubdtype(aval.dtype, jax.dtypes.extended)
        if aval.shape == () and not is_complex and not is_key:
            return jnp.asarray(found)
        returned = aval.str_short()
    except Exception as error:  # of its methods, or of a number that no array holds
        returned, cause = _shown(found), error
    raise ValueError(
        f"{given} must return one real number for an array of shape {x.shape}, not {returned}. "
        "Reduce all axes in it, as jnp.linalg.norm does."
    ) from cause


def _shown(value: Any) -> str:
    try:
        return on_one_line(reprlib.repr(value))
    except Exception:  # an integer of thousands of digits
        return f"{type(value).__name__} that cannot be shown"
