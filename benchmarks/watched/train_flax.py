"""Train modules of flax: the first five with linen, the others with nnx."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training.train_state import TrainState

from . import plant

X = np.linspace(0.1, 2.0, 48, dtype=np.float32).reshape(6, 4, 2)


def poisoned(step, value, at=...):
    batches = X.copy()
    batches[step][at] = value
    return batches


def train(module, batches):
    """Train a module of linen in one scan; it returns its loss."""
    variables = module.init(jax.random.key(0), X[0])
    state = TrainState.create(apply_fn=module.apply, params=variables, tx=optax.sgd(1e-3))

    @jax.jit
    def step(state, batch):
        value, slopes = jax.value_and_grad(state.apply_fn)(state.params, batch)
        return state.apply_gradients(grads=slopes), value

    return jax.jit(lambda state, batches: jax.lax.scan(step, state, batches))(state, batches)


@plant(3)
def linen_features():
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = jnp.log(x)  # here
            x = nn.relu(nn.Dense(8)(x))
            return jnp.mean(nn.Dense(1)(x) ** 2)

    return train(Model(), poisoned(3, -0.5, (1, 1)))


@plant(2, direction="backward")
def linen_norm():
    class Unit(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.Dense(3, use_bias=False)(x)
            return y * jnp.sqrt(jnp.sum(y**2))  # here

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return jnp.sum(nn.Dense(1)(Unit()(x)))

    return train(Model(), poisoned(2, 0.0))


@plant(4)
def linen_remat():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.Dense(4)(x)
            return y * jnp.arccos(jnp.max(x) - 1.0)  # here

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return jnp.mean(nn.remat(Block)()(x))

    return train(Model(), poisoned(4, 4.0))


@plant(1, 2)
def linen_scan():
    class Cell(nn.Module):
        @nn.compact
        def __call__(self, h, x):
            h = nn.tanh(nn.Dense(2)(x) + h)
            return h, jnp.power(x[0] - 0.05, 0.3)  # here

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            scan = nn.scan(Cell, variable_broadcast="params", split_rngs={"params": False})
            h, roots = scan()(jnp.zeros(2), x)
            return jnp.mean(h) + jnp.mean(roots)

    return train(Model(), poisoned(1, 0.0, 2))


@plant(5, element=(3,))
def linen_vmap():
    class Head(nn.Module):
        @nn.compact
        def __call__(self, x):
            total = jnp.sum(x)
            return nn.Dense(1)(x / total)[0]  # here

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            heads = nn.vmap(Head, variable_axes={"params": None}, split_rngs={"params": False})
            return jnp.mean(heads()(x))

    return train(Model(), poisoned(5, 0.0, 3))


class Net(nnx.Module):
    """A small network of nnx."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first, self.last = nnx.Linear(2, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


def loop(loss, batches):
    """Train a module of nnx in a Python loop."""
    model = Net()
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, batch):
        value, slopes = nnx.value_and_grad(loss)(model, batch)
        optimizer.update(model, slopes)
        return value

    values = []
    for batch in batches:
        values.append(step(model, optimizer, batch))
    return values, nnx.state(model)


def scanned(loss, batches):
    """Train a module of nnx in one scan."""
    model = Net()

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    def step(model, batch):
        value, slopes = nnx.value_and_grad(loss)(model, batch)
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p, g: p - 1e-3 * g, params, slopes))
        return model, value

    _, values = nnx.jit(step)(model, batches)
    return values, nnx.state(model)


@plant(2)
def nnx_python_loop():
    def loss(model, x):
        scale = jnp.log(jnp.min(x))  # here
        return jnp.mean(model(x) ** 2) * scale

    return loop(loss, poisoned(2, -1.0, (0, 0)))


@plant(0, direction="backward")
def nnx_gradient_of_where():
    def loss(model, x):
        y = model(x * 0.0)
        return jnp.sum(jnp.where(x > 0.05, y, jnp.sqrt(y * y) * 0.0))  # here

    return loop(loss, poisoned(3, 0.0, (0, 0)))


@plant(4)
def nnx_scan():
    def loss(model, x):
        y = model(x)
        weight = jnp.min(x) / jnp.max(x)  # here
        return jnp.mean(y) * weight

    return scanned(loss, poisoned(4, 0.0))


@plant(2, 1)
def nnx_fori_loop_in_scan():
    def loss(model, x):
        def refine(i, s):
            return jnp.sqrt(s * 4.0 - 1.0)  # here

        weight = jax.lax.fori_loop(0, 4, refine, jax.lax.stop_gradient(jnp.max(x)))
        return jnp.mean(model(x)) * weight

    return scanned(loss, poisoned(2, 0.26))


@plant(3)
def nnx_branch():
    def loss(model, x):
        y = model(x)
        weight = jax.lax.cond(
            jnp.min(x) < 0,
            lambda x: jnp.mean(jnp.log10(x)),  # here
            lambda x: jnp.mean(x),
            x,
        )
        return jnp.mean(y) * weight

    return scanned(loss, poisoned(3, -0.1, (2, 0)))
