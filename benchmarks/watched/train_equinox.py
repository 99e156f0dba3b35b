"""Train modules of equinox."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import plant

KEY = jax.random.key(0)
X = np.linspace(-1.0, 1.0, 48, dtype=np.float32).reshape(6, 4, 2)


class Scaled(eqx.Module):
    """A small network, and a scale that is not learned."""

    net: eqx.nn.MLP
    scale: jax.Array

    def __init__(self, scale=1.0):
        self.net = eqx.nn.MLP(2, 1, 8, 1, key=KEY)
        self.scale = jnp.float32(scale)

    def __call__(self, x):
        return self.net(x)[0] * self.scale


def train(loss, model, batches):
    """Train in one scan; the model is split into arrays and the rest, as equinox advises."""
    optimizer = optax.sgd(1e-3)
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)

    def step(carry, batch):
        arrays, state = carry
        model = eqx.combine(arrays, rest)
        value, slopes = eqx.filter_value_and_grad(loss)(model, batch)
        updates, state = optimizer.update(slopes, state)
        return (eqx.apply_updates(arrays, updates), state), value

    @jax.jit
    def run(arrays, batches):
        return jax.lax.scan(step, (arrays, optimizer.init(arrays)), batches)

    return run(arrays, batches)


def loop(loss, model, batches):
    """Train in a Python loop with a jitted step."""

    @eqx.filter_jit
    def step(model, batch):
        value, slopes = eqx.filter_value_and_grad(loss)(model, batch)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -1e-3 * g, slopes)), value

    for batch in batches:
        model, value = step(model, batch)
    return eqx.filter(model, eqx.is_array), value


def poisoned(step, value, at=...):
    batches = X.copy()
    batches[step][at] = value
    return batches


def negative(step):
    """Return batches of which one is negative, and the others positive."""
    batches = np.abs(X) + np.float32(0.5)
    batches[step] *= -1
    return batches


@plant(4)
def likelihood_of_a_negative_scale():
    def loss(model, batch):
        y = jax.vmap(model)(batch)
        scale = jax.lax.stop_gradient(jnp.max(batch))
        return jnp.mean(y**2) / 2 + jnp.log(scale)  # here

    return train(loss, Scaled(), negative(4))


@plant(3, element=(1,))
def activation_of_one_example():
    class Layer(eqx.Module):
        w: jax.Array

        def __call__(self, x):
            return jnp.power(x @ self.w, 1.5)  # here

    def loss(model, batch):
        return jnp.mean(jax.vmap(model)(batch))

    batches = np.abs(X)
    batches[3, 1] = -9.0
    return train(loss, Layer(jnp.ones(2)), batches)


@plant(2)
def ratio_in_a_python_loop():
    def loss(model, batch):
        y = jax.vmap(model)(batch)
        spread = jnp.max(batch) - jnp.min(batch)
        return jnp.mean(y) + jnp.sum(batch - batch[0]) / spread  # here

    return loop(loss, Scaled(), poisoned(2, 0.5))


@plant(2, direction="backward")
def norm_of_equal_points():
    def loss(model, batch):
        y = jax.vmap(lambda x: x * model.scale)(batch)
        return jnp.linalg.norm(y[0] - y[1])  # here

    return train(loss, Scaled(), poisoned(2, 0.25))


@plant(5, direction="backward")
def root_behind_a_filter_checkpoint():
    def loss(model, batch):
        @eqx.filter_checkpoint
        def block(x):
            h = model.scale * x
            return jnp.where(h == 0, 0.0, jnp.sqrt(jnp.abs(h)))  # here

        return jnp.sum(block(batch))

    return train(loss, Scaled(), poisoned(5, 0.0, (0, 0)))


@plant(1)
def rule_of_the_user():
    @eqx.filter_custom_vjp
    def straight_through(x):
        return jnp.round(x)

    @straight_through.def_fwd
    def forward(perturbed, x):
        return jnp.round(x), None

    @straight_through.def_bwd
    def backward(residuals, cotangent, perturbed, x):
        return cotangent * jnp.log(x)  # here

    def loss(model, batch):
        return straight_through(model.scale * jnp.max(batch))

    return train(loss, Scaled(), negative(1))


@plant(2, 2)
def recurrent_cell():
    cell = eqx.nn.GRUCell(2, 3, key=KEY)

    def loss(model, batch):
        def step(h, x):
            h = cell(x, h)
            gate = jnp.arcsin(x[0])  # here
            return h, gate * model.scale

        _, gates = jax.lax.scan(step, jnp.zeros(3), batch)
        return jnp.mean(gates)

    return train(loss, Scaled(), poisoned(2, 1.5, 2))


@plant(3)
def branch_of_a_layer():
    def loss(model, batch):
        y = jax.vmap(model)(batch)
        centre = jnp.mean(batch)
        y = jax.lax.cond(
            centre > 5,
            lambda y: y * jnp.log1p(-centre),  # here
            lambda y: y,
            y,
        )
        return jnp.mean(y)

    return train(loss, Scaled(), poisoned(3, 9.0))


@eqx.filter_jit
def normalized(x):
    centred = x - jnp.mean(x)
    return centred / jnp.std(centred)  # here: helper_with_its_own_jit


@plant(4)
def helper_with_its_own_jit():
    def loss(model, batch):
        return jnp.mean(jax.vmap(model)(normalized(jax.lax.stop_gradient(batch))))

    return train(loss, Scaled(), poisoned(4, 0.125))


@plant(element=(2,))
def ensemble():
    @eqx.filter_vmap
    def make(scale):
        return Scaled(1.0), scale

    @eqx.filter_jit
    @eqx.filter_vmap(in_axes=(eqx.if_array(0), None))
    def evaluate(model, x):
        model, scale = model
        return model(x) * jnp.sqrt(scale)  # here

    return evaluate(make(jnp.array([1.0, 2.0, -3.0, 4.0])), X[0, 0])
