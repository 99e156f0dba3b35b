"""Compare a derivative rule with central differences of the host function in float64.

Along a random direction, a few numbers are compared: weighted sums of the results, which are their
elements if there are few. At each of three distances h, the slopes and their errors follow from the
points at h and h / 2 on both sides. A rule is wrong if two distances agree with each other and
contradict it, and none supports it: noise, jumps, kinks and stairs are no findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from ...capabilities.derivatives import step_sizes
from ._subject import (
    ROUGH,
    Operands,
    Subject,
    Wrong,
    difference,
    is_inexact,
    one_by_one,
    one_line,
    wide,
)  # fmt: skip

_SCALES = (5e-3, 8e-5, 1.2e-6)  # distances relative to the argument
_RELATIVE = 7e-3  # tolerance between a rule in float32 and differences
_SURE = 4.0  # multiple of the scatter of the points that is taken for the error
_GOOD = 0.25  # a slope is known if its error is below this fraction of it
_ZERO = 1e-3  # or, if it vanishes, below this fraction of the size of the result
_FEW = 32  # elements of a result up to which each is compared
_SUMS = 8  # otherwise so many sums of all, or one if there are very many
_MANY = 1 << 16
_RULES = {  # what gives the derivative, and what to fix
    "jvp": ("defjvp", "rule passed to {}.defjvp"),
    "vjp": ("defvjp", "rule passed to {}.defvjp"),
    "gradient": ("its gradient", "gradient that {} returns"),
    "residual": ("the residual", "function passed to {}.defresidual: A(...) @ x - b"),
}

Moves = dict[int, np.ndarray]  # the change of each operand that moves; the largest is 1


def check_derivative(subject: Subject) -> Iterator[Wrong | str]:
    """Compare the rule of a callback with differences."""
    rule, operands = subject.callback.rule, subject.operands
    if rule not in _RULES:
        yield "the rule is finite differences" if rule == "finite" else "it has no rule"
        return
    moving: Sequence[int] = range(len(operands))
    if rule == "gradient":
        moving = subject.operands_of(subject.settings["gradient"].split(", "))
    fixed = subject.operands_of(subject.callback.not_differentiated)
    moving = [n for n in moving if n not in fixed and operands[n].size and is_inexact(operands[n])]
    if not moving or not any(map(is_inexact, subject.avals[: subject.values])):
        yield f"no floating-point {'result' if moving else 'argument'}"
        return
    comparison, generator = _Comparison(subject), np.random.default_rng(0)
    for group in one_by_one(moving):
        name = subject.names[group[0]]
        name += f" and {len(group) - 1} others" if len(group) > 1 else ""
        is_complex = any(operands[n].dtype.kind == "c" for n in group)
        for factor in (1, 1j) if is_complex else (1,):
            moves = {}
            for n in group:
                x = operands[n]
                scales = step_sizes(wide(np.abs(x))) / np.finfo(np.float64).eps ** (1 / 3)
                signs = generator.choice([-1.0, 1.0], x.shape)
                moves[n] = scales * generator.uniform(0.5, 1.0, x.shape) * signs
                moves[n] = moves[n] * (factor if x.dtype.kind == "c" else 1)
            unit = max(float(np.abs(move).max()) for move in moves.values())
            moves = {n: np.asarray(v / unit).astype(operands[n].dtype) for n, v in moves.items()}
            try:
                derivatives, wrong_value = comparison.by_rule(moves, operands)
            except Exception as error:
                advice = f"Call jax.{'vjp' if rule == 'vjp' else 'jvp'}(...) on it to see where."
                yield f"by {name} it fails: {one_line(error)}", advice
                return
            if wrong_value:
                advice = f"Make the first output of the rule the value of {subject.name}(...)."
                yield wrong_value, advice
                return
            wrong, unsettled = comparison.with_differences(derivatives, moves, unit)
            if wrong:
                move = moves[group[0]]
                along = ", ".join([f"{x:.3g}" for x in move.flat[:3]] + ["…"] * (move.size > 3))
                along = f"[{along}]" if move.shape else along
                yield (
                    f"by {name}, along {along}, {_RULES[rule][0]} gives {wrong}",
                    f"Fix the {_RULES[rule][1].format(subject.name)}. It was compared with central "
                    "differences of the host function in float64.",
                )
            elif unsettled:
                yield f"by {name}: {unsettled}"


class _Comparison:
    """The numbers that are compared: weighted sums of the floating-point results."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._floating = [n for n, y in enumerate(subject.avals[: subject.values]) if is_inexact(y)]
        avals, generator = [subject.avals[n] for n in self._floating], np.random.default_rng(1)
        dtypes = [x.dtype for x in (*avals, *subject.operands) if is_inexact(x)]
        self._eps = max(float(ml_dtypes.finfo(dtype).eps) for dtype in dtypes)
        self._relative = max(16 * self._eps, _RELATIVE, subject.tolerance)
        self._narrow = np.float16 if min(y.dtype.itemsize for y in avals) <= 2 else np.float32
        self._weights, self._labels = [], []  # of each result, of each number
        for y in avals:
            parts = (", real part,", ", imaginary part,") if y.dtype.kind == "c" else ("",)
            size = int(np.prod(y.shape)) * len(parts)
            if size <= _FEW:
                self._weights.append(np.eye(size))
                places = [f" at {[*map(int, i)]}" if i else "" for i in np.ndindex(y.shape)]
                self._labels += [place + part for place in places for part in parts]
            else:
                count = _SUMS if size < _MANY else 1
                values = [-1.0, -0.75, -0.5, 0.5, 0.75, 1.0]  # which every dtype has
                self._weights.append(generator.choice(values, (count, size)))
                self._labels += [", summed with random signs,"] * count

    def by_rule(self, moves: Moves, operands: Operands) -> tuple[np.ndarray, str]:
        """Return the derivatives of the numbers by the rule, and what is wrong with its value."""
        subject, result = self._subject, self._subject.result or []

        def along(t: Any) -> list[Any]:
            moved = [x + t * moves[n] if n in moves else x for n, x in enumerate(operands)]
            return subject.applied(moved)[: len(self._floating)]

        if subject.callback.rule == "vjp":
            value, pull = jax.vjp(along, 0.0)
            derivatives: Any = []
            for n, block in enumerate(self._weights):
                for weights in block:
                    subject.pause()
                    y, cotangents = value[n], list(map(jax.numpy.zeros_like, value))
                    if y.dtype.kind == "c":  # JAX does not conjugate: re(-1j * y) is im(y)
                        weights = weights.view(np.complex128).conj()
                    cotangents[n] = jax.numpy.asarray(weights.reshape(y.shape), y.dtype)
                    derivatives.append(float(pull(cotangents)[0]))
        else:
            value, tangents = jax.jvp(along, (0.0,), (1.0,))
            derivatives = self._numbers(list(map(_flat, tangents)))
        return np.asarray(derivatives), difference(
            list(map(np.asarray, value)), [result[n] for n in self._floating],
            [subject.paths[n] for n in self._floating], ROUGH,
            f"{_RULES[str(subject.callback.rule)][0]} returns the value {{found}}{{at}}; the "
            "function itself returns {expected}",
        )  # fmt: skip

    def with_differences(
        self, derivatives: np.ndarray, moves: Moves, unit: float
    ) -> tuple[str, str]:
        """Return what is wrong with the rule, and why that is unknown; both empty if it is right.

        Args:
            derivatives: those of the numbers, by the rule.
            moves: the direction.
            unit: the size of the arguments that move.
        """
        slopes, why = [], ""
        for scale in _SCALES:
            try:
                slopes.append(self._slopes(moves, unit, scale))
            except Exception as error:  # outside of its domain
                why = f"the function fails near this point with {type(error).__name__}"
                continue
            is_right, is_wrong = self._verdict(derivatives, slopes)
            if is_right.all():
                return "", ""
        if not slopes:
            return "", why
        is_right, is_wrong = self._verdict(derivatives, slopes)
        if is_wrong.any():  # unless the rule itself cancels
            rounding = self._rounding(derivatives, moves)
            is_right, is_wrong = self._verdict(derivatives, slopes, rounding)
        if is_wrong.any():
            values, n = slopes[-1][0], int(is_wrong.argmax())
            is_negative = (np.abs(derivatives + values) <= self._relative * np.abs(values)).all()
            sign = ": the sign is wrong" if is_negative else ""
            differences = f"differences give {values[n]:.6g}{sign}"
            return f"{derivatives[n]:.6g}{self._labels[n]}; {differences}", ""
        at = "".join(self._labels[n] for n in np.flatnonzero(~is_right)[:1])
        why = f"differences do not settle{at}: a kink, noise, or not finite near this point"
        return "", "" if is_right.all() else why

    def _numbers(self, results: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([w @ y for w, y in zip(self._weights, results, strict=True)])

    def _at(self, moves: Moves, distance: float) -> list[np.ndarray]:
        """Return the results of the host function, in float64."""
        operands = [
            np.asarray(wide(x) + distance * wide(moves[n])) if n in moves else x
            for n, x in enumerate(self._subject.operands)
        ]
        dtypes: list[Any] = [y.dtype for y in self._subject.avals]
        for n in self._floating:
            dtypes[n] = np.complex128 if dtypes[n].kind == "c" else np.float64
        results = self._subject.run(operands, dtypes=dtypes)
        return [_flat(results[n]) for n in self._floating]

    def _slopes(self, moves: Moves, unit: float, scale: float) -> np.ndarray:
        """Return, for each number, its slope at one distance, and more in further rows.

        These are a bound of the error, how much the slope changes over the distance, whether the
        number is the same at all points, and its change if the argument changes by its own size.
        """
        h = scale * unit
        points = [self._at(moves, h * step) for step in (0.0, 1.0, -1.0, 0.5, -0.5)]
        with np.errstate(all="ignore"):
            in_narrow = [np.array_equal(y, y.astype(self._narrow), True) for p in points for y in p]
            eps = float(np.finfo(self._narrow if all(in_narrow) else np.float64).eps)
            middle, high, low, near_high, near_low = map(self._numbers, points)
            pairs = zip(self._weights, points[0], strict=True)
            sizes = np.concatenate([np.abs(w) @ np.abs(y) for w, y in pairs])
            odd, near_odd = (high - low) / 2, (near_high - near_low) / 2
            even, near_even = (high + low) / 2 - middle, (near_high + near_low) / 2 - middle
            rise = (8 * near_odd - odd) / 3  # exact for a cubic
            scatter = np.abs(2 * near_odd - odd) + np.abs(4 * near_even - even)
            errors = _SURE * scatter + 4 * eps * (sizes + np.abs(rise) / scale)
            constant = np.all([y == middle for y in (high, low, near_high, near_low)], axis=0)
            return np.stack([rise / h, errors / h, 2 * np.abs(even) / h, constant, sizes / unit])

    def _verdict(
        self, derivatives: np.ndarray, slopes: Sequence[np.ndarray], rounding: Any = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for which numbers the rule is right, and for which it is wrong.

        Args:
            derivatives: those of the numbers, by the rule.
            slopes: from large to small distances.
            rounding: further rounding errors of the rule.
        """
        values, errors, bends, constant, sizes = np.stack(slopes, axis=1)
        largest = np.abs(derivatives).max(initial=0.0, where=np.isfinite(derivatives))
        rounding = rounding + self._eps * (16 * sizes + 2 * largest)
        is_constant, is_zero = constant.astype(bool), derivatives == 0
        # A rule may say that a result does not depend on the starting point of an iteration. The
        # differences then are its rounding errors, divided by a step of about eps ** (1 / 3).
        negligible = 2 * self._eps ** (2 / 3) * is_zero
        allowed = np.fmax(negligible, self._subject.tolerance) * sizes
        with np.errstate(all="ignore"):
            off, steep = np.abs(derivatives - values), np.abs(values)
            larger, size = np.fmax(np.abs(derivatives), steep), np.fmax(sizes, bends)
            uncertain = self._relative * steep + errors
            is_known = (uncertain <= _GOOD * larger) | (uncertain <= _ZERO * size)
            near = off <= uncertain + rounding
            right = near & is_known | is_constant & is_zero | (off + errors <= allowed)
            supported = off <= uncertain + rounding + bends
            supported &= errors <= 2 * np.fmax(steep, bends)
            # A number that is constant here alone is on a stair, whose slope a rule may ignore.
            stair = is_constant & np.logical_or.accumulate(~is_constant)
            against = is_known & ~near & ~stair & np.isfinite(uncertain)
        right = right.any(axis=0)
        return right, (against.sum(axis=0) >= 2) & ~supported.any(axis=0) & ~right

    def _rounding(self, derivatives: np.ndarray, moves: Moves) -> np.ndarray:
        """Return how much the rule's numbers change if its inputs change in the last digits."""
        generator, most = np.random.default_rng(2), np.zeros(derivatives.shape)

        def nudged(x: np.ndarray, digits: int) -> np.ndarray:
            if not is_inexact(x):
                return x
            steps = float(ml_dtypes.finfo(x.dtype).eps) * generator.integers(
                -digits, digits + 1, x.shape
            )
            return np.asarray(wide(x) * (1 + steps)).astype(x.dtype)

        for digits in [32] * 8 + [2048] * 8:
            try:
                operands = [nudged(x, digits) for x in self._subject.operands]
                changed = {n: nudged(move, digits) for n, move in moves.items()}
                others, _ = self.by_rule(changed, operands)
            except Exception:  # outside of its domain
                continue
            with np.errstate(all="ignore"):
                change = np.abs(others - derivatives)
                most = np.fmax(
                    most, change if digits == 32 else np.where(derivatives == 0, change, 0.0)
                )
        return 4 * most


def _flat(y: Any) -> np.ndarray:
    """Return the real and imaginary parts in a row."""
    return wide(y).reshape(-1).view(np.float64)
