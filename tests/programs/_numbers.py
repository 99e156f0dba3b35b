"""Numbers without JAX: each carries its tangents and the `vmap`s it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np

NOTHING: frozenset[int] = frozenset()


class Number:
    """A float32 and the vmaps it depends on."""

    def __init__(self, value: Any, taint: frozenset[int] = NOTHING) -> None:
        self.value, self.taint = np.float32(value), taint

    def __getitem__(self, index: None) -> Array:
        return Array([self])

    __iter__ = None

    def __add__(self, other):
        return lift(np.add, (1.0, 1.0), self, other)

    def __sub__(self, other):
        return self + other * -1.0

    def __rsub__(self, other):
        return self * -1.0 + other

    def __mul__(self, other):
        return _multiply(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __gt__(self, other):
        return Truth(base(self).value > base(other).value, taint_of(self) | taint_of(other))

    def __lt__(self, other):
        return Truth(base(self).value < base(other).value, taint_of(self) | taint_of(other))


class Dual(Number):
    """A value and its tangent with respect to one derivative."""

    def __init__(self, level: int, primal: Number, tangent: Number) -> None:
        self.level, self.primal, self.tangent = level, primal, tangent

    @property
    def taint(self) -> frozenset[int]:  # type: ignore[override]
        return taint_of(self.primal) | taint_of(self.tangent)


class Truth:
    """A condition, which can be added to a number."""

    def __init__(self, value: Any, taint: frozenset[int]) -> None:
        self.value, self.taint = bool(value), taint

    def __and__(self, other):
        other = truth(other)
        return Truth(self.value and other.value, self.taint | other.taint)

    __rand__ = __and__

    def __radd__(self, number: int) -> Bound:
        return Bound(number + self.value, self.taint)


class Bound:
    """The upper bound of a loop."""

    def __init__(self, value: int, taint: frozenset[int]) -> None:
        self.value, self.taint = value, taint

    def __gt__(self, number: int) -> Truth:
        return Truth(number < self.value, self.taint)


class Array:
    """Numbers along one axis."""

    def __init__(self, items: list[Any], taint: frozenset[int] = NOTHING) -> None:
        self.items, self.own = items, taint  # an empty array can depend on vmaps, too

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def map(self, function: Any, *others: Any) -> Array:
        rows = [
            [other[i] if isinstance(other, Array) else other for other in others]
            for i in range(len(self.items))
        ]
        return Array(
            [over(function, item, *row) for item, row in zip(self.items, rows, strict=False)]
        )

    def __add__(self, other):
        return over(lambda a, b: a + b, self, other)

    def __mul__(self, other):
        return over(lambda a, b: a * b, self, other)

    __radd__, __rmul__ = __add__, __mul__

    def reshape(self, rows: int, columns: int) -> Array:
        return Array([Array(self.items[i * columns : (i + 1) * columns]) for i in range(rows)])


def over(function: Any, *values: Any) -> Any:
    """Apply `function` to numbers, element by element if some of them are arrays."""
    arrays = [value for value in values if isinstance(value, Array)]
    if not arrays:
        return function(*values)
    length = len(arrays[0].items)
    return Array(
        [
            over(function, *[v.items[i] if isinstance(v, Array) else v for v in values])
            for i in range(length)
        ],
        NOTHING if length else taint_of(values),
    )


def number(value: Any) -> Number:
    return value if isinstance(value, Number) else Number(value)


def truth(value: Any) -> Truth:
    return value if isinstance(value, Truth) else Truth(value, NOTHING)


def base(value: Any) -> Number:
    """Return the number without its tangents."""
    value = number(value)
    while isinstance(value, Dual):
        value = value.primal
    return value


def taint_of(value: Any) -> frozenset[int]:
    if isinstance(value, Array):
        return value.own.union(*(taint_of(item) for item in value.items))
    if isinstance(value, (tuple, list)):
        return frozenset().union(*(taint_of(item) for item in value))
    return getattr(value, "taint", NOTHING)


def level_of(value: Any) -> int:
    if isinstance(value, Array):
        return max((level_of(item) for item in value.items), default=-1)
    return value.level if isinstance(value, Dual) else -1


def split(value: Any, level: int) -> tuple[Any, Any]:
    """Return the primal and the tangent of one derivative."""
    if isinstance(value, Array):
        return value.map(lambda item: split(item, level)[0]), value.map(
            lambda item: split(item, level)[1]
        )
    if isinstance(value, Dual) and value.level == level:
        return value.primal, value.tangent
    return value, Number(0.0)


def joined(level: int, primal: Any, tangent: Any) -> Any:
    return over(lambda p, t: Dual(level, number(p), number(t)), primal, tangent)


def lift(function: Any, slopes: tuple[Any, ...], *values: Any) -> Any:
    """Apply a function of numbers, given its partial derivatives (numbers) at these values."""
    if any(isinstance(value, Array) for value in values):
        return over(lambda *row: lift(function, slopes, *row), *values)
    level = max(level_of(value) for value in values)
    if level < 0:
        taint = taint_of(values)
        return Number(function(*(base(value).value for value in values)), taint)
    pairs = [split(value, level) for value in values]
    primal = lift(function, tuple(split(s, level)[0] for s in slopes), *(p for p, _ in pairs))
    tangent: Any = Number(0.0)
    for slope, value, (_, dot) in zip(slopes, values, pairs, strict=False):
        if _varies(value, level):
            tangent = tangent + split(slope, level)[0] * dot
    return Dual(level, primal, tangent)


def _multiply(one: Any, other: Any) -> Any:
    if isinstance(other, Array):
        return other * one
    level = max(level_of(one), level_of(other))
    if level < 0:
        return Number(base(one).value * base(other).value, taint_of((one, other)))
    (a, da), (b, db) = split(one, level), split(other, level)
    a, b = number(a), number(b)
    # A factor that does not vary adds no term, and the derivative does not depend on the other one.
    terms = [n * dot for n, of, dot in ((a, other, db), (b, one, da)) if _varies(of, level)]
    return Dual(level, a * b, total(terms))


def _varies(value: Any, level: int) -> bool:
    return isinstance(value, Dual) and value.level == level


def sine(value: Any) -> Any:
    level = level_of(value)
    if level < 0:
        return Number(np.sin(base(value).value), taint_of(value))
    primal, tangent = split(value, level)
    return Dual(level, sine(primal), cosine(primal) * tangent)


def cosine(value: Any) -> Any:
    level = level_of(value)
    if level < 0:
        return Number(np.cos(base(value).value), taint_of(value))
    primal, tangent = split(value, level)
    return Dual(level, cosine(primal), sine(primal) * tangent * -1.0)


def with_taint(value: Any, taint: frozenset[int]) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(with_taint(item, taint) for item in value)
    if isinstance(value, Array):
        return Array([with_taint(item, taint) for item in value.items], value.own)
    if isinstance(value, Dual):
        return Dual(value.level, with_taint(value.primal, taint), with_taint(value.tangent, taint))
    if isinstance(value, Number):
        return Number(value.value, value.taint | taint)
    return value


def total(value: Any) -> Any:
    if isinstance(value, Number):
        return value
    result: Any = Number(0.0, value.own if isinstance(value, Array) else NOTHING)
    for item in value.items if isinstance(value, Array) else value:
        result = result + (total(item) if isinstance(item, Array) else item)
    return result


def stop_gradient(value: Any) -> Any:
    return over(base, value)


def minimum(one: Any, other: Any) -> Any:
    if base(one).value == base(other).value:
        return number(one) * 0.5 + number(other) * 0.5
    less, more = (one, other) if base(one).value < base(other).value else (other, one)
    return chosen(less, more, taint_of((one, other)))


def where(test: Truth, yes: Any, no: Any) -> Any:
    one, other = (yes, no) if test.value else (no, yes)
    return chosen(one, other, test.taint | taint_of((yes, no)))


def chosen(one: Any, other: Any, taint: frozenset[int]) -> Number:
    """Return `one`, with tangents wherever `other` has some: JAX differentiates both."""
    return with_taint(number(one) + nothing_of(number(other)), taint)


def nothing_of(value: Number) -> Number:
    """Return zero with the tangents and the taint of `value`."""
    if isinstance(value, Dual):
        return Dual(value.level, nothing_of(value.primal), nothing_of(value.tangent))
    return Number(0.0, value.taint)


def arange(length: float) -> Array:
    return Array([Number(i) for i in range(int(length))])


def to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, Array):
        return np.array([base(item).value for item in value.items], np.float32)
    return np.asarray(base(value).value)


def from_numpy(value: np.ndarray, taint: frozenset[int]) -> Any:
    if value.ndim:
        return Array([from_numpy(item, taint) for item in value], NOTHING if len(value) else taint)
    return Number(value, taint)
