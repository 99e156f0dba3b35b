"""Minimize functions and find fixed points with jaxopt; the functions are the user's.

The solvers make their first iteration before their loop: its step k is iteration k + 1.
"""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

from . import plant

X = np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(4, 3)


def descend(f, w, *args, steps=8, size=0.1):
    """Minimize with jaxopt's own loop, without a line search."""
    solver = jaxopt.GradientDescent(f, stepsize=size, maxiter=steps, acceleration=False, tol=0.0)
    return solver.run(w, *args).params


@plant(4)
def weight_that_leaves_the_domain():
    def f(w):
        return w + 0.0 * jnp.log(jax.lax.stop_gradient(w))  # here

    return descend(f, jnp.float32(0.45))


@plant(5)
def steps_of_the_user():
    def f(w, x):
        root = jnp.sqrt(x)  # here
        return jnp.mean((w * root - 1.0) ** 2)

    solver = jaxopt.GradientDescent(f, stepsize=0.1, acceleration=False)
    xs = np.full((8, 3), 2.0, np.float32)
    xs[5, 1] = -1.0

    def step(carry, x):
        return tuple(solver.update(*carry, x)), None

    w = jnp.float32(0.5)
    return jax.jit(lambda w, xs: jax.lax.scan(step, (w, solver.init_state(w, xs[0])), xs))(w, xs)


@plant(2)
def python_loop():
    def f(w, x):
        weights = x / jnp.sum(x)  # here
        return jnp.sum(weights * (w - 1.0) ** 2)

    solver = jaxopt.GradientDescent(f, stepsize=0.1, acceleration=False)
    w, state = jnp.float32(0.5), None
    update = jax.jit(solver.update)
    for x in (X[0], X[1], 0 * X[2], X[3]):
        state = solver.init_state(w, X[0]) if state is None else state
        w, state = update(w, state, x)
    return w


@plant(direction="backward")
def gradient_at_zero():
    def f(w):
        return jnp.sqrt(jnp.sum(w * w))  # here

    # The first gradient, for the state of the solver, comes before its loop.
    return descend(f, jnp.zeros(3))


@plant(1)
def bisection():
    def f(x):
        return jnp.arccos(x) - 0.1  # here

    def total(x):
        return jnp.where(x > 1.15, -1.0, f(jnp.where(x > 1.15, 0.5, x)))

    # 0.75, 0.975, 1.0875
    solver = jaxopt.Bisection(total, lower=0.3, upper=1.2, check_bracket=False, maxiter=10)
    return jax.jit(lambda: solver.run().params)()


@plant(2)
def fixed_point():
    def f(x):
        return jnp.log(x)  # here

    # 9, 2.2, 0.8, -0.2
    solver = jaxopt.FixedPointIteration(f, maxiter=8)
    return jax.jit(lambda x: solver.run(x).params)(jnp.float32(9.0))


@plant(2, element=(2,))
def batch_of_fits():
    def f(w, limit):
        return w + 0.0 * jnp.power(jax.lax.stop_gradient(w) - limit, 0.5)  # here

    def fit(limit):
        return descend(f, jnp.float32(0.45), limit)

    return jax.jit(jax.vmap(fit))(jnp.array([-9.0, -8.0, 0.18, -7.0]))


@plant(1, 2)
def loop_of_the_user():
    def f(w):
        def body(i, s):
            return jnp.log(s)  # here

        # 2.2, 0.8, -0.2 from iteration 2, in which w is below 0.3
        start = jnp.where(jax.lax.stop_gradient(w) < 0.3, 2.2, 1e30)
        return w + 0.0 * jax.lax.fori_loop(0, 4, body, start)

    return descend(f, jnp.float32(0.45))


@plant(2)
def branch_under_a_checkpoint():
    @jax.checkpoint
    def f(w):
        fixed = jax.lax.stop_gradient(w)
        term = jax.lax.cond(
            fixed < 0.2,
            lambda x: jnp.arccosh(x),  # here
            lambda x: x,
            fixed,
        )
        return w + 0.0 * term

    return descend(f, jnp.float32(0.45))


@jax.jit
def standardized(x):
    return (x - jnp.mean(x)) / jnp.std(x)  # here: lbfgs


@plant(4)
def lbfgs():
    def f(w, x):
        return jnp.sum((w * standardized(x) - 1.0) ** 2)

    solver = jaxopt.LBFGS(f, maxiter=5, linesearch="backtracking")
    xs = np.stack([X[0], X[1], X[2], X[3], 0 * X[0] + 0.5, X[1]])
    return jax.jit(lambda xs: jax.lax.map(lambda x: solver.run(jnp.float32(0.1), x).params, xs))(xs)
