"""Reduce values to a few numbers on the device, and send those of bad values to the host."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._note import Note, Options
from ._received import Facts, receive_bad

MOST_ELEMENTS = 16  # of a batch, of which each has a row
NUMBERS = ("sum", "min", "max", "nan", "inf", "finite")


@dataclasses.dataclass(frozen=True, eq=False)
class BadCall:
    """What XLA calls with the numbers of one bad value, then those of the inputs."""

    facts: Facts

    def __call__(self, numbers: np.ndarray, steps: np.ndarray) -> tuple:
        receive_bad(self.facts, numbers.tolist(), steps.tolist())
        return ()


class Parts(NamedTuple):
    """The operands of a note, with one entry of the steps and the mask for each batch element."""

    value: Any
    inputs: Sequence[Any]
    steps: Any
    mask: Any

    @staticmethod
    def of(note: Note, axes: Any, sizes: Any, arrays: Sequence[Any]) -> Parts:
        """Split the operands.

        Args:
            note: the value.
            axes: for each array, the axes of the vmap levels, innermost first; None: unbatched.
            sizes: of the vmap levels, innermost first.
            arrays: the value, its inputs, the steps, and the mask if there is one.
        """
        inputs, loops = len(note.names), len(note.loops)
        value, arrays, of = arrays[0], arrays[1:], axes[1:]
        steps = [
            _by_element(lambda x, axis: x, x, a, sizes)
            for x, a in zip(arrays[inputs : inputs + loops], of[inputs:], strict=False)
        ]
        mask = None
        if note.conditional and any(a is not None for a in of[-1]):  # otherwise the branch is taken
            mask = _by_element(lambda x, axis: x, arrays[-1], of[-1], sizes)
        count = math.prod(sizes)
        stacked = jnp.stack(steps, axis=-1) if steps else jnp.zeros((count, 0), np.int32)
        return Parts(value, arrays[:inputs], stacked, mask)


def look(
    send: Callable[..., Any],
    facts: Facts,
    rows: bool,
    axes: Any,
    sizes: Any,
    arrays: Sequence[Any],
) -> list[Any]:
    """Send a value to the host if it is bad; part of the lowering.

    One sum tells whether all values are finite, which is the quickest of all tests: XLA computes
    it with vector instructions. Only if it is not finite, all are looked at.

    Args:
        send: binds a host call.
        facts: what is known of the value.
        rows: whether the numbers of the value are wanted in any case.
        axes: see `Parts.of`.
        sizes: see `Parts.of`.
        arrays: see `Parts.of`.

    Returns:
        With `rows`, one array of 32-bit integers: the bits of the numbers and the steps, for each
        batch element.
    """
    note, parts = facts.note, Parts.of(facts.note, axes, sizes, arrays)
    x, own = _real(parts.value), axes[0]
    total = _by_element(jnp.sum, x, own, sizes)
    finite = jnp.isfinite(total) if parts.mask is None else jnp.isfinite(total) | ~parts.mask
    if note.looks_for_bad:
        of = note.options.bad
        fine = finite if of.is_finite else jnp.logical_not(of.test(parts.value))

        def details(*arrays: Any) -> None:
            _send_bad(send, facts, axes, sizes, arrays)

        jax.lax.cond(jnp.all(fine), lambda *_: None, details, *arrays)
    if not rows:
        return []
    numbers = jax.lax.cond(
        jnp.all(finite), lambda x, total: _of_finite(x, total, own, sizes),
        lambda x, total: _numbers(x, own, sizes), x, total,
    )  # fmt: skip
    return [_packed(note.options, numbers, own, sizes, parts)]


def rarely(
    every: int, send: Callable[[Any], Any], facts: Facts, axes: Any, sizes: Any, arrays: Any
) -> None:
    """Send the numbers of a value in every `every`-th step of the innermost loop."""
    parts = Parts.of(facts.note, axes, sizes, arrays)

    def now(x: Any, *arrays: Any) -> None:
        within = Parts.of(facts.note, axes, sizes, (x, *arrays))
        numbers = _numbers(_real(x), axes[0], sizes)
        send(_packed(facts.note.options, numbers, axes[0], sizes, within))

    turns = parts.steps[:, -1] % every == 0
    turn = jnp.any(turns if parts.mask is None else turns & parts.mask)
    jax.lax.cond(turn, now, lambda *_: None, *arrays)


def _send_bad(send: Any, facts: Facts, axes: Any, sizes: Any, arrays: Sequence[Any]) -> None:
    """Send the first batch element that is bad, if one is: a sum can be infinite without."""
    parts = Parts.of(facts.note, axes, sizes, arrays)
    is_bad = facts.note.options.bad.test
    bad = _by_element(jnp.any, is_bad(parts.value), axes[0], sizes)
    bad = bad if parts.mask is None else bad & parts.mask
    element = jnp.argmax(bad)

    def details(*arrays: Any) -> None:
        wanted = []
        for x, of in zip(arrays, axes, strict=False):
            found = _by_element(jnp.any, is_bad(x), of, sizes)
            wanted.append(jnp.append(_numbers(_real(x), of, sizes)[element], found[element]))
        wide = jnp.result_type(*wanted)
        numbers = jnp.concatenate([part.astype(wide) for part in wanted])
        send(numbers, jnp.append(element.astype(np.int32), parts.steps[element]), call=call)

    call = BadCall(facts)
    jax.lax.cond(jnp.any(bad), details, lambda *_: None, parts.value, *parts.inputs)


def _real(x: Any) -> Any:
    """Return real values of 32 or 64 bits; of complex values, the absolute ones."""
    x = jnp.abs(x) if jnp.iscomplexobj(x) else x
    return x if x.dtype == np.float64 else x.astype(np.float32)


def _by_element(reduce: Callable[..., Any], x: Any, axes: Any, sizes: Any) -> Any:
    """Reduce all axes but those of the batch; return one number for each batch element."""
    own = [a for a in axes if a is not None]
    rest = tuple(a for a in range(x.ndim) if a not in own)
    reduced = reduce(x, axis=rest)
    order = sorted(own)
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


# An input can be empty.
_least = functools.partial(jnp.min, initial=jnp.inf)
_most = functools.partial(jnp.max, initial=-jnp.inf)


def _numbers(x: Any, axes: Any, sizes: Any) -> Any:
    """Return sum, minimum and maximum of the finite values, and how many are NaN, inf, finite."""
    finite = jnp.isfinite(x)

    def of(reduce: Any, array: Any) -> Any:
        return _by_element(reduce, array, axes, sizes).astype(x.dtype)

    return jnp.stack(
        [
            of(jnp.sum, jnp.where(finite, x, 0)),
            of(_least, jnp.where(finite, x, jnp.inf)),
            of(_most, jnp.where(finite, x, -jnp.inf)),
            of(jnp.sum, jnp.isnan(x)),
            of(jnp.sum, jnp.isinf(x)),
            of(jnp.sum, finite),
        ],
        axis=-1,
    )


@functools.partial(jax.jit, static_argnums=1)
def numbers_of(x: Any, options: Options) -> tuple[Any, Any]:
    """Return the numbers of an array, as `look` does, and whether it is bad."""
    parts = Parts(x, (), jnp.zeros((1, 0), np.int32), None)
    numbers = _numbers(_real(x), (), ())
    return _packed(options, numbers, (), (), parts), jnp.any(options.bad.test(x))


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


def _number_by(name: str, reduce: Callable[[Any], Any], x: Any, axis: Sequence[int]) -> Any:
    """Return the user's number of each batch element, whose axes are the others than `axis`."""
    batch = [a for a in range(x.ndim) if a not in axis]
    sizes = [x.shape[a] for a in batch]
    flat = x.transpose([*batch, *axis]).reshape(math.prod(sizes), *(x.shape[a] for a in axis))
    found = jax.vmap(reduce)(flat)
    if getattr(found, "shape", None) != (len(flat),) or jnp.iscomplexobj(found):
        raise ValueError(
            f"{name}= must return one real number for an array of shape {flat.shape[1:]}, not "
            f"{jax.eval_shape(reduce, flat[0])}. Reduce all axes in it, as jnp.linalg.norm does."
        )
    return found.reshape(sizes)
