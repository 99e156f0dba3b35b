"""Typical pure functions with NumPy and SciPy, and their arguments.

All of them are correct, so no check may report anything.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

import jupyter_jaxcb as jaxcb

TABLE = np.linspace(0.0, 1.0, 11)
SPLINE = scipy.interpolate.CubicSpline(TABLE, np.sin(TABLE))
_CACHE = {}


class Correct(NamedTuple):
    function: object
    args: tuple
    result: object = "x"  # as passed to `pure`
    vmap_method: str = "sequential"


X = np.float32([0.5, 2.0, 1.25])
SQUARE = np.float32([[2.0, 0.5], [0.5, 1.0]])


def copies_and_writes(x):
    x = np.array(x)
    x[0] = 1.0
    x += 2.0
    x.sort()
    return x


def fills_a_new_array(x):
    out = np.empty_like(x)
    np.multiply(x, 2, out=out)
    out[0] += 1
    return out


def draws_with_a_given_seed(x, seed):
    return np.random.default_rng(int(seed)).normal(size=x.shape).astype(x.dtype)


def caches_results(x):
    key = x.tobytes()
    if key not in _CACHE:
        _CACHE[key] = np.cumsum(x)
    return _CACHE[key]


def counts_in_a_local_variable(x):
    count = 0

    def step(value):
        nonlocal count
        count += 1
        return value * count

    return np.array([step(value) for value in x], x.dtype)


def modifies_its_copy_of_a_tree(x):
    x["w"] = x["w"] + x["b"]
    return {"w": x["w"], "b": x["b"]}


def solves(x):
    return scipy.optimize.brentq(lambda t: t**3 - float(x), 0.0, 10.0)


def integrates(x):
    return scipy.integrate.quad(lambda t: math.exp(-t * float(x)), 0, 1)[0]


def ode(x):
    solution = scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x, rtol=1e-8)
    return solution.y[:, -1]


def string_work(x):
    return np.array([len(f"{value:.3f}") for value in x], x.dtype)


@functools.lru_cache
def matrix(n):
    return np.eye(n, dtype=np.float32) * 2


def cached_matrix(x):
    return matrix(len(x)) @ x


def sums_rows(x):
    return x / x.sum(axis=-1, keepdims=True)


CORRECT = {
    "sin": Correct(np.sin, (X,), X, vmap_method="expand_dims"),
    "jv": Correct(scipy.special.jv, (1, X), X, "expand_dims"),
    "jv of orders": Correct(
        lambda v, z: scipy.special.jv(v[..., None], z), (np.float32(1), X), X, "broadcast_all"
    ),
    "gammaln": Correct(scipy.special.gammaln, (X,), X, vmap_method="legacy_vectorized"),
    "logsumexp": Correct(lambda x: scipy.special.logsumexp(x), (X,), X[0]),
    "expit": Correct(lambda x: scipy.special.expit(x), (X,), vmap_method="expand_dims"),
    "inverse": Correct(np.linalg.inv, (SQUARE,), SQUARE, "expand_dims"),
    "solve": Correct(lambda x: scipy.linalg.solve(x, x[0]), (SQUARE,), SQUARE[0]),
    "cholesky": Correct(lambda x: np.linalg.cholesky(x), (SQUARE,), "x", "broadcast_all"),
    "eigenvalues": Correct(lambda x: np.linalg.eigvalsh(x), (SQUARE,), SQUARE[0]),
    "sort": Correct(lambda x: np.sort(x), (X,), vmap_method="expand_dims"),
    "argmax": Correct(lambda x: int(np.argmax(x)), (X,), np.int32(0)),
    "softmax": Correct(sums_rows, (X,), "x", "expand_dims"),
    "cumsum": Correct(lambda x: np.cumsum(x, axis=-1), (X,), "x", "broadcast_all"),
    "fft": Correct(lambda x: np.abs(scipy.fft.fft(x)), (X,)),
    "filter": Correct(lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0), (X,)),
    "lfilter": Correct(lambda x: scipy.signal.lfilter([1.0], [1.0, -0.5], x), (X,)),
    "interp": Correct(lambda x: np.interp(x, TABLE, TABLE**2), (X,), "x", "expand_dims"),
    "spline": Correct(lambda x: SPLINE(x), (X,), "x", "expand_dims"),
    "pdf": Correct(lambda x: scipy.stats.norm.pdf(x), (X,), "x", "expand_dims"),
    "quantile": Correct(lambda x: np.quantile(x, 0.5), (X,), X[0]),
    "brentq": Correct(solves, (np.float32(2.0),)),
    "quad": Correct(integrates, (np.float32(2.0),)),
    "ode": Correct(ode, (X,)),
    "einsum": Correct(lambda x, y: np.einsum("ij,j->i", x, y), (SQUARE, SQUARE[0]), SQUARE[0]),
    "where": Correct(lambda x: np.where(x > 1, x, 0 * x), (X,), "x", "expand_dims"),
    "clip": Correct(lambda x: np.clip(x, 0.6, 1.0), (X,), "x", "legacy_vectorized"),
    "histogram": Correct(lambda x: np.histogram(x, 4)[0], (X,), np.zeros(4, np.int32)),
    "two results": Correct(lambda x: (x.min(), x.max()), (X,), (X[0], X[0])),
    "math": Correct(lambda x: math.sin(x), (np.float32(0.5),)),
    "copies and writes": Correct(copies_and_writes, (X,)),
    "fills a new array": Correct(fills_a_new_array, (X,)),
    "draws with a given seed": Correct(draws_with_a_given_seed, (X, np.int32(3))),
    "caches results": Correct(caches_results, (X,)),
    "counts in a local variable": Correct(counts_in_a_local_variable, (X,)),
    "tree": Correct(modifies_its_copy_of_a_tree, ({"w": X, "b": X},)),
    "string work": Correct(string_work, (X,)),
    "cached matrix": Correct(cached_matrix, (X,)),
    "no elements": Correct(lambda x: 2 * x, (np.zeros((0, 2), np.float32),)),
    "integers": Correct(lambda x: x // 2, (np.int32([3, 8]),), "x", "expand_dims"),
    "booleans": Correct(
        np.logical_not, (np.array([True, False]),), np.array([True, False]), "expand_dims"
    ),
}


def register(name):
    function, args, result, vmap_method = CORRECT[name]
    return jaxcb.pure(function, result=result, vmap_method=vmap_method), args
