"""Find roots, minima and fixed points with optimistix; the functions are the user's."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from . import plant

T = np.linspace(0.0, 1.0, 5, dtype=np.float32)


def newton(f, y, args=None, steps=12):
    solver = optx.Newton(rtol=1e-5, atol=1e-5)
    return optx.root_find(f, solver, y, args, throw=False, max_steps=steps).value


@plant(1)
def newton_leaves_the_domain():
    def residual(y, args):
        return jnp.log(y) - 1.0  # here

    # y - y (log y - 1): 8 goes to -0.6
    return jax.jit(lambda y: newton(residual, y))(jnp.float32(8.0))


@plant(3)
def fixed_point():
    def f(y, args):
        return jnp.log(y)  # here

    # 9, 2.2, 0.8, -0.2
    solver = optx.FixedPointIteration(rtol=1e-6, atol=1e-6)
    return jax.jit(lambda y: optx.fixed_point(f, solver, y, throw=False, max_steps=10).value)(
        jnp.float32(9.0)
    )


@plant(0, element=(1,))
def data_of_one_fit():
    def residual(k, data):
        scaled = jnp.sqrt(data)  # here
        return k * T - scaled

    def fit(data):
        solver = optx.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
        return optx.least_squares(
            residual, solver, jnp.float32(1.0), data, throw=False, max_steps=8
        ).value

    data = np.stack([T, T - 0.5, 2 * T])
    return jax.jit(jax.vmap(fit))(data)


@plant(0)
def gauss_newton():
    def residual(y, args):
        return jnp.stack([y[0] - 1.0, jnp.power(y[1], 0.5) - 4.0])  # here

    solver = optx.GaussNewton(rtol=1e-5, atol=1e-5)
    y = jnp.array([0.0, -1.0])
    return jax.jit(lambda y: optx.least_squares(residual, solver, y, throw=False).value)(y)


@plant(4, 0)
def solve_in_every_step():
    def residual(y, t):
        return y**3 + y - jnp.arccos(t)  # here

    def step(y, t):
        return newton(residual, y, t), None

    return jax.jit(lambda ts: jax.lax.scan(step, 0.5, ts))(
        jnp.array([0.1, 0.2, 0.3, 0.4, 1.5, 0.6])
    )


@plant(direction="backward")
def gradient_of_a_root():
    def loss(k):
        size = jnp.sqrt(jnp.sum(k * k))  # here
        return newton(lambda y, size: y**3 + y - 1.0 - size, jnp.float32(0.5), size)

    return jax.jit(jax.grad(loss))(jnp.zeros(2))


@plant(2)
def bisection_with_a_branch():
    def f(y, args):
        return jax.lax.cond(
            y > 0.8,
            lambda y: y / (y - y) - y / (y - y),  # here
            lambda y: y - 0.95,
            y,
        )

    # 0.5, 0.75, 0.875
    solver = optx.Bisection(rtol=1e-3, atol=1e-3)
    options = {"lower": 0.0, "upper": 1.0}
    return jax.jit(
        lambda y: optx.root_find(
            lambda y, args: jnp.where(y >= 1.0, 0.05, f(jnp.where(y >= 1.0, 0.0, y), args)),
            solver, y, options=options, throw=False, max_steps=10,
        ).value
    )(jnp.float32(0.5))  # fmt: skip


@plant(1)
def bfgs():
    def f(y, args):
        return jnp.sum((y - 3.0) ** 2) - jnp.log(4.5 - jnp.sum(y))  # here

    solver = optx.BFGS(rtol=1e-5, atol=1e-5)
    return jax.jit(lambda y: optx.minimise(f, solver, y, throw=False, max_steps=12).value)(
        jnp.zeros(3)
    )


@plant(2, 0, 3)
def inner_loop_of_the_user():
    def residual(y, n):
        def body(i, s):
            return jnp.sqrt(s - 1.0)  # here

        return y - jax.lax.fori_loop(0, n, body, 9.0)

    # sqrt(8) = 2.8, sqrt(1.8) = 1.4, sqrt(0.4) = 0.6, sqrt(-0.4)
    def step(y, n):
        return newton(lambda y, n: residual(y, n), y, n), None

    return jax.jit(lambda ns: jax.lax.scan(step, 0.5, ns))(jnp.array([1, 2, 4]))


@jax.jit
def scaled(y):
    return y * jnp.arctanh(y + 0.9)  # here: jitted_and_checkpointed


@plant(0)
def jitted_and_checkpointed():
    f = jax.checkpoint(scaled)
    return newton(lambda y, args: f(y) + y - 0.01, jnp.float32(0.5))
