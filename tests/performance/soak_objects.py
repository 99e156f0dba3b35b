"""Host objects under load: their number stays within the bound, and memory does not grow.

Round by round, compiled programs of every transformation call a linear solver, whose factorization
is a host object, with matrices that come back and others that are new. Some host functions raise an
exception or a KeyboardInterrupt, in the solver or while an object is computed; the result of all
other programs is compared with NumPy. Each step is one host call.

Run it with ``make soak SECONDS=3600``, or alone: ``python -m tests.performance.soak_objects 600``.
"""

import gc
import sys
import time
import weakref
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from .soak import resident_mb

BOUND = 16  # objects
NEW = 7  # of so many rounds, one has a new matrix
KNOWN = 3  # matrices that come back
SIZE = 3
LOOP = 20
MAY_GROW_MB = 30
FAILURES = {"solve": ValueError, "factor": OSError, "interrupt": KeyboardInterrupt}


class Inverse:
    def __init__(self, a):
        self.of = np.linalg.inv(a)


class ObjectsSoak:
    """The programs, and what is left of their objects.

    Attributes:
        totals: numbers of rounds, host calls and failures.
        wrong: messages about wrong results and objects beyond the bound.
    """

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.totals, self.wrong = Counter(), []
        self.made = weakref.WeakSet()
        self.fails = None  # what raises next
        self.known = [self._matrix() for _ in range(KNOWN)]

        @jaxcb.host_object(max_objects=BOUND)
        def factor(a):
            self._raise("factor", "interrupt")
            self.made.add(made := Inverse(a))
            return made

        @jaxcb.pure(result="b", linear="b")
        def solve(a, b):
            self._called()
            return (factor(a).of @ b).astype(b.dtype)

        @solve.deftranspose
        def solve_transposed(a, ct):
            self._called()
            return (factor(a).of.T @ ct).astype(ct.dtype)

        solve.defresidual(lambda a, x, b: a @ x - b)
        self.factor, self.solve = factor, solve
        total = lambda a, b: solve(a, b).sum()  # noqa: E731
        self.programs = {
            name: jax.jit(program)
            for name, program in {
                "plain": solve,
                "vmap": lambda a, b: jax.vmap(solve, (None, 0))(a, jnp.stack([b] * LOOP))[3],
                "scan": lambda a, b: jax.lax.scan(
                    lambda c, _: (c, solve(a, b)), 0, None, length=LOOP
                )[1][3],
                "while": lambda a, b: jax.lax.fori_loop(
                    0, LOOP, lambda _, x: solve(a, b) + 0 * x, b
                ),
                "cond": lambda a, b: jax.lax.cond(b[0] < 99, solve, lambda a, b: b, a, b),
                "checkpoint": jax.checkpoint(solve),
                "jvp": lambda a, b: jax.jvp(solve, (a, b), (0 * a, b))[1],
                "linearize": lambda a, b: jax.linearize(lambda b: solve(a, b), b)[1](b),
                "vjp": lambda a, b: jax.vjp(lambda b: solve(a.T, b), b)[1](b)[0],
                "grad": lambda a, b: solve(a, b) + 0 * jax.grad(total)(a, b).sum(),
                "hessian": lambda a, b: (
                    solve(a, b) + jax.hessian(lambda b: total(a, b) ** 2)(b).sum() * 0
                ),
            }.items()
        }

    def round(self):
        """Run each program with one matrix, one of them with a host function that fails."""
        self.totals["rounds"] += 1
        known = self.totals["rounds"] % NEW
        a = self.known[known % KNOWN] if known else self._matrix()
        b = self.random.normal(size=SIZE).astype(np.float32)
        for name, program in self.programs.items():
            found = jax.block_until_ready(program(a, b))
            if not np.allclose(found, np.linalg.solve(a, b), rtol=1e-3, atol=1e-3):
                self.wrong.append(f"round {self.totals['rounds']}: wrong result of {name}")
        self._fail()
        kept, alive = self.factor.info().objects, len(self.made)
        if kept > BOUND or alive > BOUND:
            words = f"{kept} objects are kept and {alive} alive, of at most {BOUND}"
            self.wrong.append(f"round {self.totals['rounds']}: {words}")

    def _fail(self):
        where = self.random.choice([*FAILURES])
        name = self.random.choice([*self.programs])
        self.fails = where
        try:
            jax.block_until_ready(self.programs[name](self._matrix(), np.ones(SIZE, np.float32)))
        except BaseException as error:
            if not isinstance(jaxcb.host_error(error) or error, FAILURES[where]):
                raise
            self.totals[f"failed in {where}"] += 1
        else:
            self.wrong.append(f"round {self.totals['rounds']}: {name} did not fail in {where}")
        self.fails = None

    def _called(self):
        self.totals["calls"] += 1
        self._raise("solve")

    def _raise(self, *places):
        if self.fails in places:
            kind, self.fails = FAILURES[self.fails], None
            raise kind("on purpose")

    def _matrix(self):
        return (np.eye(SIZE) * 4 + self.random.uniform(size=(SIZE, SIZE))).astype(np.float32)


def main(seconds):
    soak, end = ObjectsSoak(), time.monotonic() + seconds
    for _ in range(100):
        soak.round()
    began = resident_mb()
    while time.monotonic() < end:
        soak.round()
    gc.collect()
    grown = resident_mb() - began
    if grown > MAY_GROW_MB:
        soak.wrong.append(f"memory grew by {grown:.0f} MB")
    print(dict(soak.totals), soak.factor.info(), f"{grown:+.1f} MB", *soak.wrong[:10], sep="\n")
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
