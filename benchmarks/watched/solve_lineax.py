"""Solve linear systems with lineax; the matrices and the functions are the user's."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

from . import plant

B = np.array([1.0, 2.0, 3.0], np.float32)
TIMES = np.arange(8, dtype=np.float32)


def stiffness(k):
    """A symmetric positive definite matrix."""
    return jnp.diag(jnp.array([2.0, 3.0, 4.0])) + k * jnp.ones((3, 3))


@plant()
def entry_of_a_matrix():
    @jax.jit
    def solve(k):
        scale = jnp.sqrt(k)  # here
        return lx.linear_solve(lx.MatrixLinearOperator(stiffness(scale)), B).value

    return solve(-1.0)


@plant(5)
def time_steps():
    def step(x, t):
        stiff = jnp.log(4.5 - t)  # here
        operator = lx.MatrixLinearOperator(jnp.eye(3) + 0.01 * stiff)
        return lx.linear_solve(operator, x, throw=False).value, None

    return jax.jit(lambda b: jax.lax.scan(step, b, TIMES))(B)


@plant(element=(2,))
def batch_of_systems():
    def one(k):
        operator = lx.MatrixLinearOperator(stiffness(jnp.power(k, 0.5)))  # here
        return lx.linear_solve(operator, B, throw=False).value

    return jax.jit(jax.vmap(one))(jnp.array([1.0, 2.0, -3.0, 4.0]))


@plant(0)
def function_of_conjugate_gradients():
    def product(x):
        return stiffness(1.0) @ x + 0.0 * jnp.log(2.5 - jnp.max(jnp.abs(x)))  # here

    @jax.jit
    def solve(b):
        shape = jax.ShapeDtypeStruct((3,), jnp.float32)
        operator = lx.FunctionLinearOperator(product, shape, lx.positive_semidefinite_tag)
        return lx.linear_solve(operator, b, lx.CG(1e-5, 1e-5, max_steps=5), throw=False).value

    return solve(B)


@plant(direction="backward")
def gradient_of_a_matrix():
    def loss(k):
        radius = jnp.sqrt(jnp.sum(k**2))  # here
        operator = lx.MatrixLinearOperator(stiffness(radius))
        return jnp.sum(lx.linear_solve(operator, B).value)

    return jax.jit(jax.grad(loss))(jnp.zeros(2))


@plant(6)
def right_hand_side():
    operator = lx.MatrixLinearOperator(stiffness(1.0))

    def step(x, t):
        load = (6.0 - t) / jnp.abs(t - 6.0)  # here
        return lx.linear_solve(operator, x + load, lx.LU(), throw=False).value, None

    return jax.jit(lambda b: jax.lax.scan(step, b, TIMES))(B)


@plant(2)
def while_loop_of_refinements():
    def body(carry):
        n, x = carry
        x = lx.linear_solve(lx.DiagonalLinearOperator(jnp.full(3, 2.0)), x).value
        return n + 1, x * jnp.arcsin(0.5 * n + 0.4)  # here

    return jax.jit(lambda b: jax.lax.while_loop(lambda c: c[0] < 5, body, (0, b)))(B)


@plant(4)
def branch():
    def step(x, t):
        size = jax.lax.cond(
            t > 3.5,
            lambda t: jnp.arctanh(t),  # here
            lambda t: t,
            t,
        )
        operator = lx.DiagonalLinearOperator(2.0 + size * jnp.ones(3))
        return lx.linear_solve(operator, x).value, None

    return jax.jit(lambda b: jax.lax.scan(step, b, TIMES))(B)


@jax.checkpoint
def assembled(k):
    return stiffness(jnp.log(k))  # here: checkpointed_assembly


@plant(3)
def checkpointed_assembly():
    def step(x, k):
        operator = lx.MatrixLinearOperator(assembled(k), lx.symmetric_tag)
        return lx.linear_solve(operator, x, throw=False).value, None

    def loss(ks):
        return jnp.sum(jax.lax.scan(step, B, ks)[0])

    return jax.jit(jax.grad(loss))(jnp.array([4.0, 3.0, 2.0, -1.0, 5.0]))


@plant()
def python_loop():
    @jax.jit
    def step(x, k):
        residual = x - jnp.mean(x)
        weights = residual / jnp.max(residual)  # here
        operator = lx.DiagonalLinearOperator(1.0 + weights**2)
        return lx.linear_solve(operator, x, throw=False).value + k

    x = B
    for k in (1.0, 2.0):
        x = step(x, k)
    return step(jnp.ones(3), 3.0), x
