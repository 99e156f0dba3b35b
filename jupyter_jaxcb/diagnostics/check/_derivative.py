"""Compare a derivative rule with finite differences of the host function in float64."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from ...recording import Finding
from ._compare import difference, wide
from ._probes import Probes
from ._slopes import (
    MIDDLE,
    SCALES,
    Direction,
    Moves,
    Slopes,
    directions_of,
    is_inexact,
    slopes,
    verdict,
)
from ._subject import Subject, one_line

KIND = "derivative rule"
_RELATIVE = 7e-3  # tolerance between a rule in float32 and differences
_ELEMENTS = 4096  # elements compared of a result of a forward-mode rule, besides its sum
_ROWS = 64  # elements compared of all results of a reverse-mode rule, besides their sum
_LONG = 1 << 18  # elements of an argument from which on fewer rows are compared
_ROUNDING = 8.0  # tolerance, in multiples of the effect of a change in the last digit


def derivative_findings(subject: Subject, result: Sequence[np.ndarray]) -> Iterator[Finding | str]:
    """Yield findings where the rule is wrong, and texts where it could not be checked.

    Args:
        subject: the callback with its arguments.
        result: the result of its host function.
    """
    values = subject.avals[: subject.values]
    floating = [k for k, aval in enumerate(values) if is_inexact(np.dtype(aval.dtype))]
    directions = directions_of(subject)
    if not directions or not floating:
        yield f"no floating-point {'result' if directions else 'argument'}"
        return
    rule = _Rule(subject, floating, directions)
    yield from rule.value_findings([result[k] for k in floating])
    if rule.fails:
        return
    for direction in directions:
        what = _along(rule, direction)
        if what:
            yield f"{direction.words}: {what}" if isinstance(what, str) else what


class _Rule:
    """The rule of a callback as JAX applies it, reduced to the numbers that are compared.

    Attributes:
        probes: computes the numbers that are compared.
        kind: ``"jvp"`` or ``"vjp"``, in which it is applied.
        words: names it in findings.
        fails: whether the rule raised.
        relative: the relative tolerance.
    """

    def __init__(
        self, subject: Subject, floating: Sequence[int], directions: Sequence[Direction]
    ) -> None:
        self.subject, self.floating, self.directions_of = subject, floating, directions
        own = str(subject.callback.rule)
        self.kind = kind = "jvp" if own == "gradient" else own
        self.words = "its gradient" if own == "gradient" else f"def{own}"
        self.fails = False
        avals = [subject.avals[k] for k in floating]
        most = _ELEMENTS
        if kind == "vjp":
            longest = max(x.size for x in subject.operands)
            most = max(_ROWS // len(avals), 2) if longest < _LONG else 2
        self.probes = Probes(avals, most)
        dtypes = [np.dtype(y.dtype) for y in (*avals, *subject.operands)]
        eps = [float(ml_dtypes.finfo(one).eps) for one in dtypes if is_inexact(one)]
        self._eps = max(eps)
        self.relative = max(16 * self._eps, _RELATIVE, subject.tolerance)

    def rounding(self, found: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Estimate the rounding error of the values in `found`."""
        largest = np.abs(found).max(initial=0.0, where=np.isfinite(found))
        return self._eps * (16 * sizes + 2 * largest)

    def allowed(self, found: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the slopes that count as none.

        A rule may say that a result does not depend on the starting point of an iteration. The
        differences then are its rounding errors, divided by a step of about ``eps ** (1 / 3)``.
        """
        negligible = np.where(found == 0, 2 * self._eps ** (2 / 3), 0.0)
        return np.fmax(negligible, self.subject.tolerance) * sizes

    def along(
        self, direction: Direction, operands: Sequence[np.ndarray] | None = None
    ) -> np.ndarray:
        """Return the derivatives according to the rule."""
        if self.kind == "vjp":
            return self._pulled(direction.changes, operands)
        of_some = self._function(list(direction.changes), operands)
        given = self.subject.operands if operands is None else operands
        tangents = list(direction.changes.values())
        _, moved = jax.jvp(of_some, [given[n] for n in direction.changes], tangents)
        return self.probes([wide(y) for y in moved])

    def value_findings(self, result: Sequence[np.ndarray]) -> Iterator[Finding]:
        """Check that the rule runs, and that its primal value is the host function's result."""
        places = list(
            dict.fromkeys(n for direction in self.directions_of for n in direction.changes)
        )
        of_some = self._function(places, None)
        given = [self.subject.operands[n] for n in places]
        try:
            with self.subject.quiet():
                if self.kind == "jvp":
                    value, _ = jax.jvp(of_some, given, [np.zeros_like(x) for x in given])
                else:
                    value, _ = jax.vjp(of_some, *given)
        except Exception as error:
            self.fails = True
            names = ", ".join(self.subject.names[n] for n in places[:3])
            yield _failure(self.kind, f"by {names} it", error)
            return
        paths = [self.subject.paths[k] for k in self.floating]
        wrong = difference([*map(np.asarray, value)], result, paths, 0.5)
        if wrong:
            yield Finding(
                KIND,
                f"{self.words} returns the value {wrong.found}{wrong.at}; the function itself "
                f"returns {wrong.expected}",
                f"Make the first output of the rule the value of {self.subject.name}(...).",
            )

    def _function(
        self, places: Sequence[int], operands: Sequence[np.ndarray] | None
    ) -> Callable[..., list[Any]]:
        given = list(self.subject.operands if operands is None else operands)
        function = self.subject.differentiable()

        def of_some(*values: Any) -> list[Any]:
            moved = dict(zip(places, values, strict=True))
            return function(*(moved.get(n, x) for n, x in enumerate(given)))

        return of_some

    def _pulled(self, changes: Moves, operands: Sequence[np.ndarray] | None) -> np.ndarray:
        given = self.subject.operands if operands is None else operands
        of_some = self._function(list(changes), operands)
        _, pull = jax.vjp(of_some, *(given[n] for n in changes))
        numbers = []
        for cotangents in self.probes.cotangents():
            self.subject.pause()
            gradients = pull([jax.numpy.asarray(one) for one in cotangents])
            products = (
                np.real(wide(g).reshape(-1) @ wide(v).reshape(-1))
                for g, v in zip(gradients, changes.values(), strict=True)
            )
            numbers.append(sum(products))
        return np.array(numbers, np.float64)


def _along(rule: _Rule, direction: Direction) -> Finding | str:
    """Check one direction: return a finding, why it could not be checked, or ``""`` if right."""
    subject = rule.subject
    try:
        with subject.quiet():
            subject.pause()
            found = rule.along(direction)
    except Exception as error:
        return _failure(rule.kind, f"{direction.words} it", error)
    function = _Function(rule, direction)
    scales: list[Slopes] = []
    sizes = np.zeros(found.shape)
    for tried in ([MIDDLE], range(len(SCALES))):
        scales = [one for one in (function.scale(SCALES[n]) for n in tried) if one]
        if scales:
            sizes = function.sizes() / direction.unit
            rounding = rule.rounding(found, sizes)
            allowed = rule.allowed(found, sizes)
            if verdict(found, scales, sizes, rule.relative, rounding, allowed).right.all():
                return ""
    if not scales:
        return function.fails
    rounding, allowed = rule.rounding(found, sizes), rule.allowed(found, sizes)
    judged = verdict(found, scales, sizes, rule.relative, rounding, allowed)
    if judged.wrong.any():
        with subject.quiet():
            rounding += _ROUNDING * _sensitivity(rule, direction, found)
        judged = verdict(found, scales, sizes, rule.relative, rounding, allowed)
    if judged.wrong.any():
        return _difference(rule, direction, found, scales[-1], int(judged.wrong.argmax()))
    return _unsettled(rule, scales[-1], ~judged.right) if not judged.right.all() else ""


class _Function:
    """The host function along one direction, in float64.

    Attributes:
        fails: why it could not be evaluated.
    """

    def __init__(self, rule: _Rule, direction: Direction) -> None:
        self._rule, self._direction = rule, direction
        self._known: dict[float, Slopes | None] = {}
        self.fails = ""

    def scale(self, of_size: float) -> Slopes | None:
        """Return the slopes at one scale, relative to the argument's size; None if it fails."""
        if of_size not in self._known:
            try:
                probes, unit = self._rule.probes, self._direction.unit
                self._known[of_size] = slopes(self._at, of_size, unit, *self._middle, probes.eps)
            except Exception as error:
                self.fails = f"the function fails near this point with {type(error).__name__}"
                self._known[of_size] = None
        return self._known[of_size]

    @functools.cached_property
    def _middle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the compared numbers at the arguments, and the sizes of their results."""
        results = self._results(0.0)
        return self._rule.probes(results), self._rule.probes.sizes(results)

    def sizes(self) -> np.ndarray:
        """Return the sizes of the results that the numbers come from."""
        return self._middle[1]

    def _at(self, distance: float) -> np.ndarray:
        results = self._results(distance)
        self._rule.probes.narrow(results)
        return self._rule.probes(results)

    def _results(self, distance: float) -> list[np.ndarray]:
        subject, rule = self._rule.subject, self._rule
        changes = self._direction.changes
        operands = [
            np.asarray(wide(x) + distance * wide(changes[n])) if n in changes else x.copy()
            for n, x in enumerate(subject.operands)
        ]
        dtypes = [np.dtype(aval.dtype) for aval in subject.avals]
        for k in rule.floating:
            dtypes[k] = np.dtype(np.complex128 if dtypes[k].kind == "c" else np.float64)
        found = subject.run(operands, dtypes=dtypes, fresh=True)
        return [found[k] for k in rule.floating]


def _sensitivity(rule: _Rule, direction: Direction, found: np.ndarray) -> np.ndarray:
    """Return how much the rule's result changes if its inputs change in the last digit."""
    generator = np.random.default_rng(2)
    most = np.zeros(found.shape)
    for _ in range(2):
        operands = [_nudged(x, generator) for x in rule.subject.operands]
        changes = {n: _nudged(v, generator) for n, v in direction.changes.items()}
        with np.errstate(all="ignore"):
            try:
                other = rule.along(direction._replace(changes=changes), operands)
            except Exception:
                continue
            most = np.fmax(most, np.abs(other - found))
    return most


def _nudged(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    if not is_inexact(x.dtype):
        return x
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    return (wide(x) * (1 + eps * generator.choice([-1, 1], x.shape))).astype(x.dtype)


def _failure(kind: str, what: str, error: Exception) -> Finding:
    return Finding(
        KIND, f"{what} fails: {one_line(error)}", f"Call jax.{kind}(...) on it to see where."
    )


def _difference(
    rule: _Rule, direction: Direction, found: np.ndarray, one: Slopes, place: int
) -> Finding:
    first, *_ = direction.changes.values()
    name = rule.subject.name
    is_rule = rule.subject.callback.rule != "gradient"
    which = f"rule passed to {name}.{rule.words}" if is_rule else f"gradient that {name} returns"
    return Finding(
        KIND,
        f"{direction.words}, along {_shown(first)}, {rule.words} gives {found[place]:.6g}"
        f"{rule.probes.labels[place]}; differences give {one.values[place]:.6g}",
        f"Fix the {which}. It was compared with central differences of the host function in "
        "float64.",
    )


def _unsettled(rule: _Rule, smallest: Slopes, which: np.ndarray) -> str:
    place = int(which.argmax())
    at = rule.probes.labels[place]
    if not np.isfinite(smallest.values[place]):
        return f"the function is not finite near this point{at}"
    if smallest.kinked[place]:
        return f"the function has a kink at this point{at}"
    return f"differences do not converge{at}"


def _shown(direction: np.ndarray) -> str:
    head = [f"{value:.3g}" for value in direction.flat[:3]]
    if not direction.shape:
        return head[0]
    return f"[{', '.join([*head, *(['…'] if direction.size > 3 else [])])}]"
