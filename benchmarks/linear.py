"""Measure a sparse solver with its gradient, and what a declaration costs that nothing uses.

    make bench

The solver is SciPy's sparse LU of the Poisson equation on a grid. The baseline has the derivative
rule by hand, with JAX's callback and `jax.custom_vjp`: it factorizes in both passes.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

import jupyter_jaxcb as jaxcb

from ._interleaved import LOOP, medians, run, show

GRID = 200


def poisson(n):
    """Return rows, columns and values of the five-point matrix of an n by n grid."""
    places = np.arange(n * n).reshape(n, n)
    pairs = [(places, places, 4.0)]
    for a, b in ((places[1:], places[:-1]), (places[:, 1:], places[:, :-1])):
        pairs += [(a, b, -1.0), (b, a, -1.0)]
    rows, columns = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    values = np.concatenate([np.full(a.size, value, np.float32) for a, _, value in pairs])
    return rows, columns, values


class Solvers:
    """Both solvers of one system, and how often they factorize."""

    def __init__(self, n):
        self.rows, self.columns, self.values = poisson(n)
        self.size, self.factorizations = n * n, 0

    def factor(self, values):
        self.factorizations += 1
        entries = values, (self.rows, self.columns)
        return splu(coo_matrix(entries, (self.size, self.size)).tocsc())

    def ours(self):
        factor = jaxcb.host_object(max_objects=1)(functools.partial(self.factor))
        rows, columns = self.rows, self.columns

        @jaxcb.pure(result="b", linear="b")
        def solve(values, b):
            return factor(values).solve(b)

        solve.deftranspose(lambda values, ct: factor(values).solve(ct, "T"))
        solve.defresidual(lambda values, x, b: (-b).at[rows].add(values * x[columns]))
        return solve

    def by_hand(self):
        def on_host(mode, values, b):
            return self.factor(np.asarray(values)).solve(np.asarray(b), mode)

        def call(mode, values, b):
            return jax.pure_callback(functools.partial(on_host, mode), b, values, b)

        def backward(kept, ct):
            values, x = kept
            by_b = call("T", values, ct)
            return -by_b[self.rows] * x[self.columns], by_b

        def forward(values, b):
            x = call("N", values, b)
            return x, (values, x)

        solve = jax.custom_vjp(functools.partial(call, "N"))
        solve.defvjp(forward, backward)
        return solve


def gradient_of(solve):
    """Return a compiled value_and_grad by values and right-hand side."""
    return jax.jit(jax.value_and_grad(lambda values, b: (solve(values, b) ** 2).sum(), (0, 1)))


def solver_rows(rounds):
    solvers = Solvers(GRID)
    ours, by_hand = gradient_of(solvers.ours()), gradient_of(solvers.by_hand())
    values, b = jnp.asarray(solvers.values), jnp.ones(solvers.size, jnp.float32)
    counts, step = {}, iter(range(1_000_000))

    def counted(name, program):
        def timed():
            new = values.at[0].add(1e-3 * next(step))  # a system that was not solved before
            before = solvers.factorizations
            jax.block_until_ready(program(new, b))
            counts[name] = solvers.factorizations - before

        return timed

    found, expected = ours(values, b), by_hand(values, b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3), found, expected)
    variants = {"ours": counted("ours", ours), "hand": counted("hand", by_hand)}
    times = medians(variants, rounds)
    ratio = times["ours"] / times["hand"]
    yield (
        f"value and gradient by sparse LU, {GRID} × {GRID} / custom_vjp by hand",
        f"{ratio:.2f}",
        "<= 0.6",
        f"{times['ours'] * 1e3:.0f} / {times['hand'] * 1e3:.0f} ms, "
        f"{counts['ours']} / {counts['hand']} factorizations",
    )


def unused_rows(rounds):
    def loop(**options):
        double = jaxcb.pure(lambda x: x, result="x", **options)
        return jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, lambda _, x: double(x), x))

    plain, linear, x = loop(), loop(linear="x"), jnp.float32(1)
    times = medians({"plain": lambda: run(plain, x), "linear": lambda: run(linear, x)}, 4 * rounds)
    us = {name: seconds / LOOP * 1e6 for name, seconds in times.items()}
    yield (
        "a call with linear= that nothing differentiates / without",
        f"{us['linear'] / us['plain']:.2f}",
        "<= 1.05",
        f"{us['linear']:.2f} / {us['plain']:.2f} µs a call",
    )


def rows_of(rounds):
    yield from solver_rows(rounds)
    yield from unused_rows(rounds)


if __name__ == "__main__":
    show(__doc__, rows_of)
