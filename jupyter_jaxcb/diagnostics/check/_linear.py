"""Check that a function with ``linear=`` is linear, and that its transpose is its transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ...capabilities.linear import Linear
from ...recording import Finding
from ._compare import wide
from ._subject import Subject, one_line

KIND = "linear"
_SCALES = (1.0, 1e-3, 1e3)  # of the vectors, relative to the arguments
_LEAST = 1e-5  # tolerance: solvers that iterate are linear to their own tolerance

Vectors = list[np.ndarray]


def linear_findings(subject: Subject) -> Iterator[Finding | str]:
    """Yield a finding where the function, its transpose or its residual is wrong.

    Yields texts where there is nothing to compare.
    """
    trial = _Trial(subject, subject.callback.host.derivative)
    if not trial.moving or not trial.has_results:
        yield "no floating-point result that is linear in a floating-point argument"
        return
    with subject.quiet():
        what = next(filter(None, map(trial.nonlinear, _SCALES)), "")
    if what:
        yield Finding(KIND, what, "Name the parameters in which it is linear, and no others.")
        return
    linear = trial.linear
    if linear.transposed is None and not linear.is_self_adjoint:
        yield "it has no transpose"
    else:
        yield from _transpose_findings(trial)
    yield from trial.residual_findings()


def _transpose_findings(trial: _Trial) -> Iterator[Finding]:
    name = trial.linear.host.name
    whose = (
        "it is not its own adjoint" if trial.linear.is_self_adjoint else "its transpose is wrong"
    )
    try:
        with trial.subject.quiet():
            what = next(filter(None, map(trial.not_transposed, _SCALES)), "")
    except Exception as error:
        yield Finding(KIND, f"its transpose fails: {one_line(error)}", _ADVICE.format(name))
        return
    if what:
        yield Finding(KIND, f"{whose}: {what}", _ADVICE.format(name))


_ADVICE = (
    "Make sum(f(b) * ct) and sum(b * transposed(ct)) equal for all b and ct, without a conjugate: "
    "fix the function passed to {}.deftranspose, or the option linear_self_adjoint."
)


class _Trial:
    """Calls of the function and its transpose with random vectors.

    Attributes:
        subject: the callback with its arguments.
        linear: what is known of it.
        moving: the floating-point operands in which it is linear.
        has_results: whether it has floating-point results.
    """

    def __init__(self, subject: Subject, linear: Linear) -> None:
        self.subject, self.linear = subject, linear
        self.call = subject.arguments_of_call
        operands = subject.operands
        self.moving = [n for n in linear.places(self.call) if operands[n].dtype.kind in "fc"]
        self.has_results = any(np.dtype(y.dtype).kind in "fc" for y in subject.avals)
        self._generator = np.random.default_rng(3)
        dtypes = [operands[n].dtype for n in self.moving]
        self.is_complex = any(dtype.kind == "c" for dtype in dtypes)
        self._tolerance = max([_LEAST, *(float(np.finfo(d).eps) ** 0.5 for d in dtypes)])

    def function(self, *vectors: Any) -> list[Any]:
        """Return the floating-point results for other linear arguments."""
        self.subject.pause()
        given = dict(zip(self.moving, vectors, strict=True))
        operands = [given.get(n, x) for n, x in enumerate(self.subject.operands)]
        return self.subject.differentiable()(*operands)

    def _random(self, like: Sequence[Any], scale: float) -> Vectors:
        return [_random(self._generator, x, scale) for x in like]

    def nonlinear(self, scale: float) -> str:
        """Describe how the function is not linear; empty if it is."""
        like = [self.subject.operands[n] for n in self.moving]
        u, v = self._random(like, scale), self._random(like, scale)
        names = ", ".join(self.linear.names)
        for factors in ((0.75, -1.25), (0.5j, 1.5)) if self.is_complex else ((0.75, -1.25),):
            off = self._off(u, v, *factors)
            if off > self._tolerance:
                at = f"for arguments of size {scale:g} the difference is {off:.2g} of the result"
                if isinstance(factors[0], complex):
                    return (
                        f"it is linear in {names} for real factors alone, as if it took a conjugate"
                        f" or a real part: f(i u) is not i f(u); {at}"
                    )
                zero = max(map(_largest, self.function(*(0 * x for x in u))))
                if zero:
                    return f"it is not linear in {names}: f(0) is not zero, but {zero:.3g}; {at}"
                return f"it is not linear in {names}: f(2 u + v) is not 2 f(u) + f(v); {at}"
        return ""

    def _off(self, u: Vectors, v: Vectors, p: complex, q: complex) -> float:
        """Return the difference of f(p u + q v) and p f(u) + q f(v), relative to the latter."""
        mixed = [(p * x + q * y).astype(x.dtype) for x, y in zip(u, v, strict=True)]
        found, of_u, of_v = (self._results(w) for w in (mixed, u, v))
        off = _norm([z - (p * x + q * y) for z, x, y in zip(found, of_u, of_v, strict=True)])
        size = _norm(of_u) + _norm(of_v)
        return off / size if size else off

    def _results(self, vectors: Vectors) -> Vectors:
        return [wide(y) for y in self.function(*vectors)]

    def not_transposed(self, scale: float) -> str:
        """Describe how the transpose is wrong; empty if it is right."""
        like = [self.subject.operands[n] for n in self.moving]
        u = self._random(like, scale)
        results, pull = jax.vjp(self.function, *map(jax.numpy.asarray, u))
        w = self._random([np.asarray(y) for y in results], 1.0)

        def pulled(ct: Vectors) -> Vectors:
            self.subject.pause()
            return [wide(x) for x in pull([jax.numpy.asarray(x) for x in ct])]

        found = pulled(w)
        y = [wide(x) for x in results]
        size = _norm(y) * _norm(w) + _norm(u) * _norm(found)

        def equal(one: complex, other: complex) -> bool:
            return abs(one - other) <= self._tolerance * size

        wanted, given = _pair(y, w), _pair(u, found)
        if equal(wanted, given):
            return ""
        return self._diagnosis(u, w, pulled, equal, wanted, given)

    def _diagnosis(
        self,
        u: Vectors,
        w: Vectors,
        pulled: Callable[[Vectors], Vectors],
        equal: Callable[[complex, complex], bool],
        wanted: complex,
        given: complex,
    ) -> str:
        numbers = f"sum(f(b) * ct) is {wanted:.4g}, sum(b * transposed(ct)) is {given:.4g}"
        if equal(wanted, -given):
            return f"it has the wrong sign; {numbers}"
        if self.is_complex:
            adjoint = [x.conj() for x in pulled([x.conj() for x in w])]
            if equal(wanted, _pair(u, adjoint)):
                one = "a conjugate too many or too few: JAX transposes without one, as a.T does"
                return f"it has {one}; {numbers}"
        like = [x.shape for x in u] == [x.shape for x in w]
        if like and equal(_pair(u, self._results(w)), given):
            return f"it is the function itself, not transposed; {numbers}"
        return numbers

    def residual_findings(self) -> Iterator[Finding]:
        """Yield a finding if the residual is not zero, or has the wrong sign."""
        residual = getattr(self.linear.by_others, "at", None)
        if residual is None:
            return
        advice = f"Return A(...) @ x - b from the function passed to {self.linear.host.name}."
        advice += "defresidual."
        operands = [jax.numpy.asarray(x) for x in self.subject.operands]
        try:
            with self.subject.quiet():
                x = self.subject.callback_result()
                at_x, at_zero, b = (
                    list(map(wide, one)) for one in residual(self.call, operands, x)
                )
        except Exception as error:
            yield Finding(KIND, f"its residual fails: {one_line(error)}", advice)
            return
        size = _norm(b)
        off = 100 * self._tolerance * size
        if _norm([r - y for r, y in zip(at_zero, b, strict=True)]) <= off < size:
            yield Finding(
                KIND, "its residual has the wrong sign: for x = 0 it is b, not -b", advice
            )
        elif _norm([r + y for r, y in zip(at_zero, b, strict=True)]) > off:
            yield Finding(
                KIND, "its residual is not A(...) @ x - b: for x = 0 it is not -b", advice
            )
        elif _norm(at_x) > off:
            found = _norm(at_x) / size if size else _norm(at_x)
            yield Finding(
                KIND, f"its residual at its own result is not zero: {found:.2g} of b", advice
            )


def _random(generator: np.random.Generator, like: Any, scale: float) -> np.ndarray:
    parts = generator.standard_normal((2, *like.shape)) * scale
    whole = parts[0] + 1j * parts[1] if like.dtype.kind == "c" else parts[0]
    return whole.astype(like.dtype)


def _pair(one: Vectors, other: Vectors) -> complex:
    """Return the sum of products, without a conjugate."""
    pairs = zip(one, other, strict=True)
    return sum(((wide(x) * wide(y)).sum() for x, y in pairs), np.float64(0))


def _norm(vectors: Sequence[Any]) -> float:
    return float(np.sqrt(sum(np.sum(np.abs(wide(x)) ** 2) for x in vectors)))


def _largest(x: Any) -> float:
    return float(np.abs(wide(x)).max(initial=0.0))
