"""Solve differential equations with diffrax; the vector fields are the user's."""

import diffrax
import jax
import jax.numpy as jnp

from . import plant

CONSTANT = diffrax.ConstantStepSize()


def solve(field, y0, args=None, solver=None, steps=12, **options):
    """Solve from 0 to 0.1 * `steps`, in steps of 0.1."""
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Euler() if solver is None else solver,
        t0=0.0, t1=0.1 * steps, dt0=0.1, y0=y0, args=args, max_steps=64, **options,
    )  # fmt: skip


@plant(7)
def euler():
    def field(t, y, args):
        gain = jnp.log(0.65 - t)  # here
        return -y + 0.0 * gain

    return solve(field, jnp.float32(1.0)).ys


@plant(5)
def state_that_leaves_the_domain():
    def field(t, y, args):
        # y falls by 0.1 a step: 0.45, 0.35, ... -0.05 in step 5
        return -1.0 + 0.0 * jnp.sqrt(y)  # here

    return jax.jit(lambda y: solve(field, y).ys)(jnp.float32(0.45))


@plant(7, 2)  # the stage at t = 0.79
def stages_of_tsit5():
    def field(t, y, k):
        rate = jnp.arccos(t + 0.21)  # here
        return -k * y * rate

    saveat = diffrax.SaveAt(ts=jnp.linspace(0.0, 1.2, 5))
    return solve(field, jnp.ones(3), 0.5, diffrax.Tsit5(), saveat=saveat).ys


@plant(8, element=(1,))
def batch_of_initial_values():
    def field(t, y, limit):
        room = limit - y
        return 1.0 + 0.0 * jnp.power(room, 0.5)  # here

    def one(limit):
        return solve(field, jnp.float32(0.0), limit).ys

    return jax.vmap(one)(jnp.array([9.0, 0.75, 8.0]))


@plant(6)
def branch_of_a_controller():
    def field(t, y, args):
        return jax.lax.cond(
            t > 0.55,
            lambda y: -y / (y - y),  # here
            lambda y: -y,
            y,
        )

    # -y / 0 is infinite, and 0 / 0 is NaN.
    return solve(field, jnp.float32(0.0)).ys


@plant(4)
def forward_pass_of_a_gradient():
    def field(t, y, k):
        return -k * y * jnp.log10(0.35 - t)  # here

    return jax.grad(lambda k: solve(field, jnp.float32(1.0), k).ys[-1])(jnp.float32(0.5))


@plant(..., direction="backward")
def backward_pass():
    def field(t, y, k):
        speed = jnp.where(t > 0.45, jnp.sqrt(k * 0.0) + 1.0, 1.0)  # here
        return -y * speed

    adjoint = diffrax.DirectAdjoint()

    def loss(k):
        return solve(field, jnp.float32(1.0), k, adjoint=adjoint).ys[-1]

    return jax.grad(loss)(jnp.float32(0.5))


@plant(7)
def drift_of_a_stochastic_equation():
    def drift(t, y, args):
        return -jnp.sqrt(0.65 - t) * y  # here

    noise = diffrax.VirtualBrownianTree(0.0, 1.2, tol=1e-2, shape=(), key=jax.random.key(0))
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(drift), diffrax.ControlTerm(lambda t, y, args: 0.1 * y, noise)
    )
    return diffrax.diffeqsolve(
        terms, diffrax.Euler(), 0.0, 1.2, 0.1, jnp.float32(1.0), max_steps=64
    ).ys


@jax.jit
def reaction(y):
    return y / jnp.sum(y)  # here: jitted_reaction


@plant(9)
def jitted_reaction():
    def field(t, y, args):
        used_up = t > 0.85
        return 0.1 * reaction(jnp.where(used_up, 0.0, y))

    return solve(field, jnp.ones(2)).ys


@plant(3)
def saved_function():
    def field(t, y, args):
        return -y

    def energy(t, y, args):
        return jnp.log(0.35 - t) * y  # here

    saveat = diffrax.SaveAt(steps=True, fn=energy)
    return solve(field, jnp.float32(1.0), saveat=saveat).ys
