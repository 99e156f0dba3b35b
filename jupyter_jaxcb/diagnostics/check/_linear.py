"""Check that a function with ``linear=`` is linear, and that its transpose is its transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.linalg import norm

from ._subject import Subject, Wrong, is_inexact, one_line, wide

_SCALES = (1.0, 1e-3, 1e3)  # of the random vectors
_LEAST = 1e-5  # tolerance: solvers that iterate are linear to their own tolerance


def check_linear(subject: Subject) -> Iterator[Wrong | str]:
    """Try with random vectors whether the function is linear, and its transpose is right."""
    names, operands = subject.settings["linear"], subject.operands
    moving = [n for n in subject.operands_of(names.split(", ")) if is_inexact(operands[n])]
    like = [operands[n] for n in moving]
    if not like or not any(map(is_inexact, subject.avals)):
        yield "no floating-point result that is linear in a floating-point argument"
        return
    tolerance = max(_LEAST, *(float(jax.numpy.finfo(x.dtype).eps) ** 0.5 for x in like))
    generator = np.random.default_rng(3)

    def function(*vectors: Any) -> list[Any]:
        changed = dict(zip(moving, vectors, strict=True))
        return subject.applied([changed.get(n, x) for n, x in enumerate(operands)])

    def f(vector: np.ndarray) -> np.ndarray:
        return _vector(function(*_arrays(vector, like)))

    def random(like: Sequence[Any], scale: float) -> np.ndarray:
        parts = generator.standard_normal((2, sum(x.size for x in like))) * scale
        return parts[0] + 1j * parts[1] if _is_complex(like) else parts[0]

    try:
        wrong = _not_linear(names, f, lambda scale: random(like, scale), tolerance)
    except Exception as error:  # random vectors may be outside its domain
        yield f"it fails on random vectors: {one_line(error)}"
        return
    if wrong:
        yield wrong, "Name the parameters in which it is linear, and no others."
        return
    is_adjoint = subject.settings.get("linear_self_adjoint")
    if subject.callback.host.derivative.transposed is None and not is_adjoint:
        yield "it has no transpose"
        return
    advice = (
        "Make sum(f(b) * ct) and sum(b * transposed(ct)) equal for all b and ct, without a "
        f"conjugate: fix the function passed to {subject.name}.deftranspose, or the option "
        "linear_self_adjoint."
    )
    for scale in _SCALES:
        b = random(like, scale)
        try:
            y, pull = jax.vjp(function, *map(jax.numpy.asarray, _arrays(b, like)))
            ct, of_b = random(y, 1.0), _vector(y)
            pulled, of_conjugate = (
                _vector(pull(list(map(jax.numpy.asarray, _arrays(x, y))))) for x in (ct, ct.conj())
            )
        except Exception as error:
            yield f"its transpose fails: {one_line(error)}", advice
            return
        wanted, computed = of_b @ ct, b @ pulled
        if not _is_complex(like):  # JAX takes the real part of a cotangent of a real argument
            wanted, computed = np.real(wanted), np.real(computed)
        near = tolerance * (norm(of_b) * norm(ct) + norm(b) * norm(pulled))
        if abs(wanted - computed) > near:
            what = "it is not its own adjoint: " if is_adjoint else "its transpose is wrong: "
            if abs(wanted + computed) <= near:
                what += "it has the wrong sign; "
            elif _is_complex(like) and abs(wanted - b @ of_conjugate.conj()) <= near:
                what += "it has a conjugate too many or too few: JAX transposes without one, as a.T"
                what += " does; "
            elif [x.shape for x in like] == [x.shape for x in y] and abs(
                b @ f(ct) - computed
            ) <= near:
                what += "it is the function itself, not transposed; "
            numbers = f"sum(f(b) * ct) is {wanted:.4g}, sum(b * transposed(ct)) is {computed:.4g}"
            yield what + numbers, advice
            return


def _not_linear(names: str, f: Callable, random: Callable, tolerance: float) -> str:
    """Describe the first combination of vectors for which it is not linear; empty if it is."""
    for scale in _SCALES:
        u, v = random(scale), random(scale)
        for p, q in ((0.75, -1.25), (0.5j, 1.5)) if np.iscomplexobj(u) else ((0.75, -1.25),):
            of_u, of_v = f(u), f(v)
            off = norm(f(p * u + q * v) - (p * of_u + q * of_v))
            off /= (norm(of_u) + norm(of_v)) or 1.0
            if off > tolerance:
                of_zero = float(np.abs(f(0 * u)).max(initial=0))
                if isinstance(p, complex):
                    what = f"it is linear in {names} for real factors alone, as if it took a "
                    what += "conjugate or a real part: f(i u) is not i f(u)"
                elif of_zero:
                    what = f"it is not linear in {names}: f(0) is not zero, but {of_zero:.3g}"
                else:
                    what = f"it is not linear in {names}: f(2 u + v) is not 2 f(u) + f(v)"
                where = f"for arguments of size {scale:g} the difference is"
                return f"{what}; {where} {off:.2g} of the result"
    return ""


def _is_complex(arrays: Sequence[Any]) -> bool:
    return all(x.dtype.kind == "c" for x in arrays)


def _vector(arrays: Sequence[Any]) -> np.ndarray:
    """Return the numbers of all arrays."""
    return np.concatenate([wide(x).reshape(-1) for x in arrays])


def _arrays(vector: np.ndarray, like: Sequence[Any]) -> list[np.ndarray]:
    """Return arrays with these numbers."""
    parts = np.split(vector, np.cumsum([x.size for x in like])[:-1])
    pairs = zip(parts, like, strict=True)
    return [np.asarray(part.reshape(x.shape).astype(x.dtype)) for part, x in pairs]
