"""Sample and fit models of numpyro."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.util import potential_energy

from . import plant

numpyro.enable_validation(False)
KEY = jax.random.key(0)
X = np.linspace(0.5, 2.0, 6, dtype=np.float32)


def fit(model, guide, batches):
    """Fit by variational inference, in one scan over batches."""
    svi = SVI(model, guide, numpyro.optim.SGD(1e-2), Trace_ELBO())
    state = svi.init(KEY, batches[0])
    return jax.jit(lambda state, batches: jax.lax.scan(svi.update, state, batches))(state, batches)


def guide(x):
    loc = numpyro.param("loc", jnp.float32(0.0))
    numpyro.sample("w", dist.Normal(loc, 0.1))


def poisoned(step, value, at=...):
    batches = np.tile(X, (6, 1))
    batches[step][at] = value
    return batches


@plant()
def regression():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        features = jnp.log(x - w**2 - 3.0)  # here
        numpyro.sample("y", dist.Normal(w * features, 1.0), obs=X)

    return potential(model, X)


def potential(model, *args):
    """The potential energy at 0 and its slope, as every kernel computes it."""

    @jax.jit
    def energy(w, *args):
        return potential_energy(model, args, {}, {"w": w})

    return jax.value_and_grad(energy)(jnp.float32(0.0), *args)


@plant(4)
def batch_of_variational_inference():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        scale = jnp.sqrt(x)  # here
        numpyro.sample("y", dist.Normal(w, scale), obs=0.5 * x)

    return fit(model, guide, poisoned(4, -1.0, 2))


@plant(2)
def learned_scale():
    def guide(x):
        # The slope of the loss is 1 and the rate 0.01: 0.015, 0.005, -0.005
        size = numpyro.param("size", jnp.float32(0.015))
        log = jnp.log(jax.lax.stop_gradient(size))  # here
        numpyro.factor("cost", size + 0.0 * log)

    return fit(lambda x: None, guide, poisoned(0, 1.0))


@plant(1, ...)
def chain_in_time():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))

        def step(h, x):
            h = jnp.tanh(h + w * x)
            rate = jnp.arccosh(x + 0.5)  # here
            numpyro.sample("y", dist.Normal(h, 1.0), obs=rate)
            return h, rate

        scan(step, 0.0, x)

    return fit(model, guide, poisoned(1, 0.1, 3))


@plant(3, element=(2,))
def particles():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        numpyro.factor("fit", jnp.mean(jax.vmap(lambda x: jnp.power(x, 0.3) * w)(x)))  # here

    return fit(model, guide, poisoned(3, -1.0, 2))


@plant(direction="backward")
def slope_at_zero():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        norm = jnp.sqrt(w * w)  # here
        numpyro.sample("y", dist.Normal(norm, 1.0), obs=x)

    return potential(model, X)


@plant(0, ...)
def hamiltonian_in_a_scan():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        ratio = x / jnp.sum(x)  # here
        numpyro.sample("y", dist.Normal(w, 1.0), obs=ratio)

    init, step = numpyro.infer.hmc.hmc(
        potential_fn_gen=lambda x: lambda w: potential_energy(model, (x,), {}, {"w": w}), algo="HMC"
    )
    state = init(
        jnp.float32(0.5), num_warmup=0, step_size=0.1, trajectory_length=0.3, model_args=(X,),
        rng_key=KEY, adapt_step_size=False, adapt_mass_matrix=False,
    )  # fmt: skip

    def one(state, x):
        return step(state, model_args=(x,)), None

    return jax.jit(lambda state, xs: jax.lax.scan(one, state, xs))(state, poisoned(0, 0.0))


@plant(2)
def predictions():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        mean = jax.lax.cond(
            jnp.min(x) < 0,
            lambda x: jnp.log10(x) + w,  # here
            lambda x: x * w,
            x,
        )
        numpyro.sample("y", dist.Normal(mean, 1.0))

    def predict(x):
        return Predictive(model, num_samples=1)(KEY, x)["y"]

    return jax.jit(lambda xs: jax.lax.map(predict, xs))(poisoned(2, -1.0, 0))


@jax.jit
def link(x):
    return jnp.arcsin(x / 3.0)  # here: jitted_link


@plant(5)
def jitted_link():
    def model(x):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(w, 1.0), obs=jax.checkpoint(link)(x))

    return fit(model, guide, poisoned(5, 4.0, 1))


@plant(8, 0, 0)  # "diverging" holds in sample 8 first, after one step of integration
def nuts_of_a_model():
    def model():
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        edge = jnp.arccos(jax.lax.stop_gradient(w) / 3.0)  # here
        numpyro.factor("edge", 0.0 * edge)

    kernel = NUTS(model, step_size=1.9, adapt_step_size=False, adapt_mass_matrix=False)
    mcmc = MCMC(kernel, num_warmup=0, num_samples=12, progress_bar=False)
    mcmc.run(KEY, extra_fields=("diverging", "num_steps"))
    return mcmc.get_samples(), mcmc.get_extra_fields()
