"""The expected result of a conversion, computed with Python's integers and fractions."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np

SMALL_FLOATS = sorted(name for name in dir(jnp) if name.startswith("float8_"))
FLOATS = [*SMALL_FLOATS, "bfloat16", "float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTS = ["int4", "uint4", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
EVERY = ["bool", *INTS, *FLOATS, *COMPLEX]
NARROW = [name for name in EVERY if name not in ("int64", "uint64", "float64", "complex128")]


def meaning(name):
    if name == "bool":
        return "bool"
    return "int" if name in INTS else "float" if name in FLOATS else "complex"


MAY_CONVERT = {
    "bool": ("bool", "int", "float", "complex"),
    "int": ("int", "float", "complex"),
    "float": ("float", "complex"),
    "complex": ("complex",),
}


def limits(name):
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def converted(array, name):
    """Convert as numpy does; if numpy has no such conversion, in two steps, the first one exact."""
    with np.errstate(all="ignore"):
        try:
            return array.astype(jnp.dtype(name))
        except TypeError:
            wide = np.int64 if meaning(array.dtype.name) == "int" else np.float64
            return array.astype(wide).astype(jnp.dtype(name))


def expected(array, name, *, cast=False):
    """Return `array` in the declared dtype `name`, or None if the result must be refused."""
    came, declared = meaning(array.dtype.name), meaning(name)
    if declared not in MAY_CONVERT[came]:
        return None
    result = converted(array, name)
    pairs = zip(array.reshape(-1), result.reshape(-1), strict=True)
    if cast or all(_is_kept(before, after, came, declared, name) for before, after in pairs):
        return result
    return None


def _is_kept(before, after, came, declared, name):
    if came in ("bool", "int"):
        whole = int(before)
        if declared == "bool":
            return True
        if declared == "int":
            return limits(name)[0] <= whole <= limits(name)[1]
        return complex(after).imag == 0 and _is_exactly(complex(after).real, whole)
    parts = zip(_parts(before, came), _parts(after, declared), strict=False)
    return all(_sort(a) == _sort(b) for a, b in parts)


def _is_exactly(number, whole):
    return math.isfinite(number) and Fraction(number) == whole


def _parts(number, kind):
    return (number.real, number.imag) if kind == "complex" else (number,)


def _sort(part):
    part = float(part)
    return "nan" if math.isnan(part) else part if math.isinf(part) else "finite"


def interesting(name):
    """Return an array of numbers of the dtype, at its limits and in between."""
    if name == "bool":
        return np.array([True, False])
    if meaning(name) == "int":
        lowest, highest = limits(name)
        numbers = {lowest, lowest + 1, 0, 1, 3, highest - 1, highest}
        for power in (2**k for k in (3, 8, 11, 24, 31, 53)):
            numbers |= {power - 1, power, power + 1, -power, -power - 1}
        kept = sorted(number for number in numbers if lowest <= number <= highest)
        wide = np.uint64 if name == "uint64" else np.int64
        return np.array(kept, wide).astype(jnp.dtype(name))
    if name in SMALL_FLOATS:
        return np.arange(256, dtype=np.uint8).view(jnp.dtype(name))
    real = "float32" if name == "complex64" else "float64" if name == "complex128" else name
    largest = float(jnp.finfo(real).max)
    numbers = [0.0, -0.0, 1, -1, 1 / 3, 2.5, 300, 448, 464, 465, 480, 65504, 65520, 1e6, -1e6]
    numbers += [3.4028235e38, 3.4028236e38, 1e300, 1e-30, 1e-300, largest, -largest]
    numbers += [math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        reals = np.array(numbers).astype(jnp.dtype(real))
    if name not in COMPLEX:
        return reals
    plane = np.empty((reals.size, reals.size), jnp.dtype(name))  # not a + bj: inf times 0 is NaN
    plane.real, plane.imag = reals[:, None], reals[None, :]
    return plane[::3].reshape(-1)
