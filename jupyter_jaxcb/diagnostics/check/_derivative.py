"""Compare a derivative rule with central differences of the host function in float64.

Along a random direction, a few numbers are compared: weighted sums of the results, which are their
elements if there are few. At each of three distances h, the slopes and their errors follow from the
points at h and h / 2 on both sides. A rule is wrong if two distances agree with each other and
contradict it, and none supports it: noise, jumps, kinks and stairs are no findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from ...capabilities.derivatives import step_sizes
from ...recording import Finding
from ._compare import difference, wide
from ._subject import Subject, is_inexact, one_by_one, one_line

KIND = "derivative rule"
_SCALES = (5e-3, 8e-5, 1.2e-6)  # distances relative to the argument
_RELATIVE = 7e-3  # tolerance between a rule in float32 and differences
_SURE = 4.0  # multiple of the scatter of the points that is taken for the error
_GOOD = 0.25  # a slope is known if its error is below this fraction of it
_ZERO = 1e-3  # or, if it vanishes, below this fraction of the size of the result
_FEW = 32  # elements of a result up to which each is compared
_SUMS = 8  # otherwise so many sums of all, or one if there are very many
_MANY = 1 << 16
_CHECKED = ("jvp", "vjp", "gradient", "residual")

Moves = Mapping[int, np.ndarray]  # the change of each operand that moves; the largest is 1


def derivative_findings(
    subject: Subject, result: Sequence[np.ndarray], tolerance: float
) -> Iterator[Finding | str]:
    """Yield findings where the rule is wrong, and texts where it could not be checked.

    Args:
        subject: the callback with its arguments.
        result: the result of its host function.
        tolerance: the error of the rule that is allowed, relative to slope and result.
    """
    kind = subject.callback.rule
    names = subject.settings["gradient"].split(", ") if kind == "gradient" else None
    moving = subject.operands_of(names, without=subject.callback.not_differentiated)
    floating = [n for n in range(subject.values) if is_inexact(subject.avals[n].dtype)]
    if kind not in _CHECKED:
        yield "the rule is finite differences" if kind == "finite" else "it has no rule"
        return
    if not moving or not floating:
        yield f"no floating-point {'result' if moving else 'argument'}"
        return
    rule, generator = _Rule(subject, floating, tolerance), np.random.default_rng(0)
    paths, expected = [subject.paths[n] for n in floating], [result[n] for n in floating]
    for group in one_by_one(moving):
        name = subject.names[group[0]]
        name += f" and {len(group) - 1} others" if len(group) > 1 else ""
        is_complex = any(subject.operands[n].dtype.kind == "c" for n in group)
        for factor in (1, 1j) if is_complex else (1,):
            moves = {}
            for n in group:
                x = subject.operands[n]
                sizes = step_sizes(wide(np.abs(x))) / np.finfo(np.float64).eps ** (1 / 3)
                signs = generator.choice([-1.0, 1.0], x.shape)
                moves[n] = sizes * generator.uniform(0.5, 1.0, x.shape) * signs
                moves[n] = moves[n] * (factor if x.dtype.kind == "c" else 1)
            unit = max(float(np.abs(move).max()) for move in moves.values())
            moves = {
                n: np.asarray(move / unit).astype(subject.operands[n].dtype)
                for n, move in moves.items()
            }
            try:
                value, found = rule.along(moves, subject.operands)
            except Exception as error:
                advice = f"Call jax.{rule.kind}(...) on it to see where."
                yield Finding(KIND, f"by {name} it fails: {one_line(error)}", advice)
                return
            wrong = difference(value, expected, paths, 0.5)
            if wrong:
                yield Finding(
                    KIND,
                    f"{rule.words} returns the value {wrong.found}{wrong.at}; the function itself "
                    f"returns {wrong.expected}",
                    f"Make the first output of the rule the value of {subject.name}(...).",
                )
                return
            what = rule.what_is_wrong(moves, unit, name, found)
            if what:
                yield f"by {name}: {what}" if isinstance(what, str) else what


class _Rule:
    """The rule of a callback as JAX applies it, and the host function, in the compared numbers.

    Attributes:
        words: names the rule in findings.
        kind: ``"jvp"`` or ``"vjp"``, by which it is applied.
    """

    def __init__(self, subject: Subject, floating: Sequence[int], tolerance: float) -> None:
        self._subject, self._floating, self._tolerance = subject, floating, tolerance
        rule = str(subject.callback.rule)
        self.kind = "vjp" if rule == "vjp" else "jvp"
        self.words = {"gradient": "its gradient", "residual": "the residual"}.get(
            rule, f"def{rule}"
        )
        self._avals = [subject.avals[n] for n in floating]
        dtypes = [np.dtype(y.dtype) for y in (*self._avals, *subject.operands)]
        self._eps = max(float(ml_dtypes.finfo(one).eps) for one in dtypes if is_inexact(one))
        self._relative = max(16 * self._eps, _RELATIVE, tolerance)
        # The weights of each number in a row of the real and imaginary parts of all results.
        parts = [2 if np.dtype(y.dtype).kind == "c" else 1 for y in self._avals]
        sizes = [int(np.prod(y.shape)) * part for y, part in zip(self._avals, parts, strict=True)]
        self._ends = np.cumsum(sizes)
        rows, self._labels, generator = [], [], np.random.default_rng(1)
        for y, size, end in zip(self._avals, sizes, self._ends, strict=True):
            count = size if size <= _FEW else _SUMS if size < _MANY else 1
            signs = generator.choice([-1, 1], (count, size))
            sums: Any = (generator.uniform(0.5, 1.0, (count, size)) * signs).astype(y.dtype)
            weights = np.zeros((count, self._ends[-1]))
            weights[:, end - size : end] = np.eye(size) if size <= _FEW else sums.real
            rows.append(weights)
            places = [[*map(int, place)] for place in np.ndindex(y.shape)] if size <= _FEW else []
            at = [f" at {place}" if place else "" for place in places]
            if size > len(at):
                at = [f"{one}, {part} part," for part in ("real", "imaginary") for one in at]
            self._labels += at or [", summed with random signs,"] * count
        self._weights = np.concatenate(rows)

    def _row(self, results: Sequence[Any]) -> np.ndarray:
        wides: list[Any] = [wide(y).reshape(-1) for y in results]
        return np.concatenate(
            [part for y in wides for part in ((y.real, y.imag) if y.dtype.kind == "c" else (y,))]
        )

    def along(
        self, moves: Moves, operands: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the value, and the derivatives of the numbers along a direction, by the rule."""

        def function(*moved: Any) -> list[Any]:
            given = dict(zip(moves, moved, strict=True))
            applied = self._subject.applied(*(given.get(n, x) for n, x in enumerate(operands)))
            return applied[: len(self._floating)]

        given = [operands[n] for n in moves]
        if self.kind == "jvp":
            value, moved = jax.jvp(function, given, list(moves.values()))
            return list(map(np.asarray, value)), self._weights @ self._row(moved)
        value, pull = jax.vjp(function, *given)
        found = []
        for weights in self._weights:
            self._subject.pause()
            cotangents = []
            for y, ct in zip(self._avals, np.split(weights, self._ends[:-1]), strict=True):
                if np.dtype(y.dtype).kind == "c":  # JAX does not conjugate: re(-1j * y) is im(y)
                    ct = ct[: ct.size // 2] - 1j * ct[ct.size // 2 :]
                cotangents.append(jax.numpy.asarray(ct.reshape(y.shape), y.dtype))
            pairs = zip(pull(cotangents), moves.values(), strict=True)
            found.append(sum(np.sum(wide(g) * wide(v)).real for g, v in pairs))
        return list(map(np.asarray, value)), np.array(found)

    def what_is_wrong(
        self, moves: Moves, unit: float, name: str, found: np.ndarray
    ) -> Finding | str:
        """Compare the derivatives in `found` with differences.

        Args:
            moves: the direction.
            unit: the size of the arguments that move.
            name: their name.
            found: the derivatives of the numbers, by the rule.

        Returns:
            A finding, or why they could not be compared; ``""`` if they agree.
        """
        why, slopes = "", {}
        for n in (1, 0, 2):  # the middle distance settles most
            try:
                row = self._at(moves, 0.0)
                slopes[n] = self._slopes(moves, unit, _SCALES[n], row)
            except Exception as error:  # outside of its domain
                why = f"the function fails near this point with {type(error).__name__}"
                continue
            sizes = np.abs(self._weights) @ np.abs(row) / unit
            finite = np.abs(found).max(initial=0.0, where=np.isfinite(found))
            rounding = self._eps * (16 * sizes + 2 * finite)
            given = found, [slopes[k] for k in sorted(slopes)], sizes
            right, wrong = self._verdict(*given, rounding)
            if right.all():
                return ""
        if not slopes:
            return why
        if wrong.any():  # unless the rule itself cancels
            right, wrong = self._verdict(*given, rounding + 4 * self._sensitivity(moves, found))
        if wrong.any():
            place = int(wrong.argmax())
            return self._finding(moves, name, found, given[1][-1][0], place)
        if not right.all():
            at = self._labels[int((~right).argmax())]
            return f"differences do not settle{at}: a kink, noise, or not finite near this point"
        return ""

    def _at(self, moves: Moves, distance: float) -> np.ndarray:
        """Return the results of the host function, in float64, in a row."""
        operands = [
            np.asarray(wide(x) + distance * wide(moves[n])) if n in moves else x
            for n, x in enumerate(self._subject.operands)
        ]
        dtypes = [np.dtype(aval.dtype) for aval in self._subject.avals]
        for n in self._floating:
            dtypes[n] = np.dtype(np.complex128 if dtypes[n].kind == "c" else np.float64)
        results = self._subject.run(operands, dtypes=dtypes)
        return self._row([results[n] for n in self._floating])

    def _slopes(self, moves: Moves, unit: float, scale: float, row: np.ndarray) -> np.ndarray:
        """Return, for each number, its slope at one distance, and more in the same rows.

        These are a bound of the error, how much the slope changes over the distance, and whether
        the number is the same at all points.
        """
        h = scale * unit
        rows = [self._at(moves, h * step) for step in (1.0, -1.0, 0.5, -0.5)]
        with np.errstate(all="ignore"):
            widths = [np.dtype(y.dtype).itemsize for y in self._avals]  # does it compute in this?
            narrow = np.float32 if min(widths) > 2 else np.float16
            is_narrow = all(np.array_equal(y, y.astype(narrow), True) for y in rows)
            eps = float(np.finfo(narrow if is_narrow else np.float64).eps)
            middle, high, low, near_high, near_low = (self._weights @ y for y in (row, *rows))
            sizes = np.abs(self._weights) @ np.abs(row)
            odd, near_odd = (high - low) / 2, (near_high - near_low) / 2
            even, near_even = (high + low) / 2 - middle, (near_high + near_low) / 2 - middle
            rise = (8 * near_odd - odd) / 3  # exact for a cubic
            scatter = np.abs(2 * near_odd - odd) + np.abs(4 * near_even - even)
            errors = _SURE * scatter + 4 * eps * (sizes + np.abs(rise) / scale)
            constant = np.all([y == middle for y in (high, low, near_high, near_low)], axis=0)
            return np.stack([rise / h, errors / h, 2 * np.abs(even) / h, constant])

    def _verdict(
        self, found: np.ndarray, scales: Sequence[Any], sizes: np.ndarray, rounding: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for which numbers the rule is right, and for which it is wrong.

        Args:
            found: the derivatives of the rule.
            scales: the slopes, from large to small distances.
            sizes: the change of each number if the argument changes by its own size.
            rounding: the rounding errors of the rule.
        """
        values, errors, bends, constant = np.stack(scales, axis=1)
        constant = constant.astype(bool)
        # A rule may say that a result does not depend on the starting point of an iteration. The
        # differences then are its rounding errors, divided by a step of about eps ** (1 / 3).
        negligible = np.where(found == 0, 2 * self._eps ** (2 / 3), 0.0)
        allowed = np.fmax(negligible, self._tolerance) * sizes
        with np.errstate(all="ignore"):
            off, steep = np.abs(found - values), np.abs(values)
            known = self._relative * steep + errors
            settled, largest = np.isfinite(known), np.fmax(np.abs(found), steep)
            near = settled & (off <= known + rounding)
            is_good = (known <= _GOOD * largest) | (known <= _ZERO * np.fmax(sizes, bends))
            right = near & is_good | constant & (found == 0) | settled & (off + errors <= allowed)
            supported = settled & (off <= known + rounding + bends)
            supported &= errors <= 2 * np.fmax(steep, bends)
            sure = known + rounding <= _GOOD * largest
            sure |= ~np.isfinite(found) & (errors <= _ZERO * sizes)
            # A number that is constant here alone is on a stair, whose slope a rule may ignore.
            stair = constant & np.logical_or.accumulate(~constant)
            against = settled & ~near & sure & ~stair
            highest = np.where(against, values, -np.inf).max(axis=0)
            lowest = np.where(against, values, np.inf).min(axis=0)
            error = np.where(against, errors, 0.0).max(axis=0)
            agree = highest - lowest <= 2 * error + self._relative * np.abs(highest)
        right = right.any(axis=0)
        return right, (against.sum(axis=0) >= 2) & agree & ~supported.any(axis=0) & ~right

    def _sensitivity(self, moves: Moves, found: np.ndarray) -> np.ndarray:
        """Return how much the rule's numbers change if its inputs change in the last digits."""
        generator, most = np.random.default_rng(2), np.zeros(found.shape)

        def nudged(x: np.ndarray) -> np.ndarray:
            if not is_inexact(x.dtype):
                return x
            eps = float(ml_dtypes.finfo(x.dtype).eps)
            return (wide(x) * (1 + eps * generator.integers(-digits, digits + 1, x.shape))).astype(
                x.dtype
            )

        # A rule that cancels to exactly 0 may do so for many inputs around.
        for digits in (4, 4, 4, 4, 2048, 2048, 2048, 2048):
            operands = list(map(nudged, self._subject.operands))
            try:
                _, other = self.along({n: nudged(move) for n, move in moves.items()}, operands)
            except Exception:  # outside of its domain
                continue
            with np.errstate(all="ignore"):
                change = np.abs(other - found)
                most = np.fmax(most, change if digits == 4 else np.where(found == 0, change, 0.0))
        return most

    def _finding(
        self, moves: Moves, name: str, found: np.ndarray, slopes: np.ndarray, place: int
    ) -> Finding:
        move, *_ = moves.values()
        along = ", ".join([*(f"{x:.3g}" for x in move.flat[:3]), *["…"] * (move.size > 3)])
        callback = self._subject.name
        which = {
            "its gradient": f"gradient that {callback} returns",
            "the residual": f"function passed to {callback}.defresidual: A(...) @ x - b",
        }.get(self.words, f"rule passed to {callback}.{self.words}")
        is_negative = (np.abs(found + slopes) <= self._relative * np.abs(slopes)).all()
        return Finding(
            KIND,
            f"by {name}, along {f'[{along}]' if move.shape else along}, {self.words} gives "
            f"{found[place]:.6g}{self._labels[place]}; differences give {slopes[place]:.6g}"
            f"{': the sign is wrong' if is_negative else ''}",
            f"Fix the {which}. It was compared with central differences of the host function in "
            "float64.",
        )
