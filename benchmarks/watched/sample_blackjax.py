"""Sample with blackjax; the densities are the user's."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from . import plant

KEYS = jax.random.split(jax.random.key(0), 8)
HMC = {"step_size": 0.1, "inverse_mass_matrix": np.ones(1), "num_integration_steps": 4}


def sample(kernel, x, keys=KEYS, each=lambda state, info, x: state, xs=None):
    """Sample in one scan."""

    def step(state, given):
        key, x = given
        state, info = kernel.step(key, state)
        return state, each(state, info, x)

    xs = np.zeros(len(keys), np.float32) if xs is None else xs

    @jax.jit
    def run(x, keys, xs):
        return jax.lax.scan(step, kernel.init(x), (keys, xs))

    return run(x, keys, xs)


def normal(x):
    return -0.5 * jnp.sum(x**2)


@plant()
def density_at_the_start():
    def density(x):
        return -0.5 * jnp.sum(jnp.log(x) ** 2)  # here

    return sample(blackjax.hmc(density, **HMC), jnp.array([-1.0]))


@plant(5)
def statistic_of_the_user():
    def each(state, info, x):
        return jnp.sqrt(x) * info.acceptance_rate  # here

    xs = np.ones(8, np.float32)
    xs[5] = -4.0
    return sample(blackjax.hmc(normal, **HMC), jnp.ones(1), each=each, xs=xs)


@plant(0, 2)
def integration_leaves_the_domain():
    # The force of 4e5 on a mass of 1e4 moves it by 0.2, 0.8 and 1.8 in 0.1, 0.2 and 0.3;
    # the random momentum, by about 0.01.
    def density(x):
        barrier = jnp.power(1.5 - jax.lax.stop_gradient(x), 0.5)  # here
        return jnp.sum(4e5 * x + 0.0 * barrier)

    light = HMC | {"inverse_mass_matrix": np.full(1, 1e-4)}
    return sample(blackjax.hmc(density, **light), jnp.zeros(1))


@plant(2, 0, 0)  # `info.is_divergent` holds in sample 2 first, after one step of integration
def nuts():
    def density(x):
        return jnp.sum(-0.5 * x**2 + 0.0 * jnp.arccos(jax.lax.stop_gradient(x) / 3.0))  # here

    kernel = blackjax.nuts(density, 2.0, np.ones(1))
    return sample(kernel, jnp.full(1, 2.5))


@plant(direction="backward")
def gradient_at_zero():
    def density(x):
        return -jnp.sqrt(jnp.sum(x**2))  # here

    return sample(blackjax.mala(density, 0.1), jnp.zeros(2))


@plant(element=(2,))
def chains():
    def density(x):
        return jnp.sum(jnp.log(x)) - x[0]  # here

    kernel = blackjax.rmh(density, blackjax.mcmc.random_walk.normal(0.01))

    def chain(x, keys):
        return sample(kernel, x, keys)

    starts = jnp.array([[1.0], [2.0], [-1.0], [3.0]])
    return jax.jit(jax.vmap(chain, (0, None)))(starts, KEYS)


@plant(3)
def stochastic_gradients():
    def slope(x, batch):
        scale = batch / jnp.sum(batch)  # here
        return -x * jnp.sum(scale)

    kernel = blackjax.sgld(slope)
    batches = np.ones((6, 4), np.float32)
    batches[3] = 0.0

    def step(x, given):
        key, batch = given
        return kernel.step(key, x, batch, 0.01), None

    return jax.jit(lambda x, given: jax.lax.scan(step, x, given))(jnp.ones(2), (KEYS[:6], batches))


@plant(4)
def tempered_branch():
    def each(state, info, x):
        return jax.lax.cond(
            x > 3.5,
            lambda x: jnp.arcsin(x),  # here
            lambda x: x,
            x,
        )

    xs = np.arange(8, dtype=np.float32)
    kernel = blackjax.rmh(normal, blackjax.mcmc.random_walk.normal(0.1))
    return sample(kernel, jnp.ones(2), each=each, xs=xs)


@jax.checkpoint
def energy(x):
    return jnp.sum(jnp.log1p(x))  # here: checkpointed_density


@plant()
def checkpointed_density():
    return sample(blackjax.hmc(energy, **HMC), jnp.array([-3.0]))


@plant(2)
def python_loop():
    kernel = blackjax.hmc(normal, **HMC)

    @jax.jit
    def step(key, state, x):
        state, _ = kernel.step(key, state)
        return state, jnp.mean(state.position) * (x - x) / (x - 2.0)  # here

    state, values = kernel.init(jnp.ones(1)), []
    for key, x in zip(KEYS, (0.0, 1.0, 2.0, 3.0), strict=False):
        state, value = step(key, state, x)
        values.append(value)
    return state, values
