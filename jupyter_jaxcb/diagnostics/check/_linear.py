"""Check that a function with ``linear=`` is linear, and that its transpose is its transpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ...recording import Finding
from ._compare import wide
from ._subject import Subject, is_inexact, one_line

KIND = "linear"
_SCALES = (1.0, 1e-3, 1e3)  # of the random vectors
_LEAST = 1e-5  # tolerance: solvers that iterate are linear to their own tolerance

Vectors = list[np.ndarray]


def linear_findings(subject: Subject) -> Iterator[Finding | str]:
    """Yield a finding where the function is not linear, or its transpose is wrong."""
    names = subject.settings["linear"]
    moving = subject.operands_of(names.split(", "))
    if not moving or not any(is_inexact(y.dtype) for y in subject.avals):
        yield "no floating-point result that is linear in a floating-point argument"
        return
    like = [subject.operands[n] for n in moving]
    is_complex = any(x.dtype.kind == "c" for x in like)
    tolerance = max(_LEAST, *(float(jax.numpy.finfo(x.dtype).eps) ** 0.5 for x in like))
    generator = np.random.default_rng(3)

    def random(like: Sequence[Any], scale: float) -> Vectors:
        drawn = [generator.standard_normal((2, *x.shape)) * scale for x in like]
        return [
            (z[0] + 1j * z[1] if np.dtype(x.dtype).kind == "c" else z[0]).astype(x.dtype)
            for z, x in zip(drawn, like, strict=True)
        ]

    def function(*vectors: Any) -> list[Any]:
        given = dict(zip(moving, vectors, strict=True))
        return subject.applied(*(given.get(n, x) for n, x in enumerate(subject.operands)))

    for scale in _SCALES:
        u, v = random(like, scale), random(like, scale)
        of_u, of_v = function(*u), function(*v)
        for p, q in ((0.75, -1.25), (0.5j, 1.5)) if is_complex else ((0.75, -1.25),):
            mixed = function(*_sum(p, u, q, v))
            size = _norm(of_u) + _norm(of_v)
            off = _norm(_sum(1, mixed, -1, _sum(p, of_u, q, of_v))) / (size or 1.0)
            if off > tolerance:
                zero = max(
                    float(np.abs(wide(y)).max(initial=0)) for y in function(*_sum(0, u, 0, u))
                )
                if isinstance(p, complex):
                    what = (
                        f"it is linear in {names} for real factors alone, as if it took a conjugate"
                        " or a real part: f(i u) is not i f(u)"
                    )
                elif zero:
                    what = f"it is not linear in {names}: f(0) is not zero, but {zero:.3g}"
                else:
                    what = f"it is not linear in {names}: f(2 u + v) is not 2 f(u) + f(v)"
                what += (
                    f"; for arguments of size {scale:g} the difference is {off:.2g} of the result"
                )
                yield Finding(
                    KIND, what, "Name the parameters in which it is linear, and no others."
                )
                return
    self_adjoint = subject.settings.get("linear_self_adjoint")
    if subject.callback.host.derivative.transposed is None and not self_adjoint:
        yield "it has no transpose"
        return
    name = subject.name
    advice = (
        "Make sum(f(b) * ct) and sum(b * transposed(ct)) equal for all b and ct, without a "
        f"conjugate: fix the function passed to {name}.deftranspose, or the option "
        "linear_self_adjoint."
    )
    wrong = "it is not its own adjoint" if self_adjoint else "its transpose is wrong"
    for scale in _SCALES:
        u = random(like, scale)
        try:
            y, pull = jax.vjp(function, *map(jax.numpy.asarray, u))
            ct = random(y, 1.0)
            pulled = pull(list(map(jax.numpy.asarray, ct)))
            conjugated = pull([jax.numpy.asarray(x.conj()) for x in ct])
        except Exception as error:
            yield Finding(KIND, f"its transpose fails: {one_line(error)}", advice)
            return
        wanted, given = _pair(y, ct), _pair(u, pulled)
        near = tolerance * (_norm(y) * _norm(ct) + _norm(u) * _norm(pulled))
        if abs(wanted - given) > near:
            square = [x.shape for x in u] == [x.shape for x in ct]
            if abs(wanted + given) <= near:
                what = "it has the wrong sign; "
            elif is_complex and abs(wanted - _pair(u, map(np.conj, conjugated))) <= near:
                what = "it has a conjugate too many or too few: JAX transposes without one, as a.T "
                what += "does; "
            elif square and abs(_pair(u, function(*ct)) - given) <= near:
                what = "it is the function itself, not transposed; "
            else:
                what = ""
            numbers = f"sum(f(b) * ct) is {wanted:.4g}, sum(b * transposed(ct)) is {given:.4g}"
            yield Finding(KIND, f"{wrong}: {what}{numbers}", advice)
            return


def _sum(p: complex, xs: Any, q: complex, ys: Any) -> Vectors:
    pairs = zip(xs, ys, strict=True)
    return [np.asarray(p * wide(x) + q * wide(y)).astype(x.dtype) for x, y in pairs]


def _pair(xs: Any, ys: Any) -> complex:
    """Return the sum of products, without a conjugate."""
    pairs = zip(xs, ys, strict=True)
    return sum(((wide(x) * wide(y)).sum() for x, y in pairs), np.float64(0))


def _norm(vectors: Any) -> float:
    return float(np.sqrt(sum(np.sum(np.abs(wide(x)) ** 2) for x in vectors)))
