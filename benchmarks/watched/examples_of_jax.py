"""Networks with nothing but JAX, in the manner of its examples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import plant

KEY = jax.random.key(0)
IMAGES = np.linspace(0.0, 1.0, 6 * 4 * 16, dtype=np.float32).reshape(6, 4, 16)
LABELS = np.tile(np.eye(4, 3, dtype=np.float32), (6, 1, 1))


def init(*sizes):
    keys = jax.random.split(KEY, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(0.1 * jax.random.normal(k, (n, m)), jnp.zeros(m)) for k, n, m in pairs]


def predict(params, x):
    *hidden, (w, b) = params
    for weights, bias in hidden:
        x = jnp.tanh(x @ weights + bias)
    return x @ w + b


def cross_entropy(params, batch):
    x, labels = batch
    logits = predict(params, x)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * labels, axis=1))


def descend(params, slopes, rate=1e-2):
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes)


def train(loss, images=IMAGES, params=None):
    """Train in one scan over batches."""

    def step(params, batch):
        value, slopes = jax.value_and_grad(loss)(params, batch)
        return descend(params, slopes), value

    params = init(16, 8, 3) if params is None else params
    return jax.jit(functools.partial(lax.scan, step))(params, (images, LABELS))


def poisoned(step, value, at=...):
    images = IMAGES.copy()
    images[step][at] = value
    return images


@plant(3)
def softmax_by_hand():
    def loss(params, batch):
        x, labels = batch
        e = jnp.exp(predict(params, x) * jnp.max(x))
        p = e / jnp.sum(e, axis=1, keepdims=True)  # here
        return -jnp.mean(jnp.sum(p * labels, axis=1))

    params = init(16, 3)
    params[-1] = (params[-1][0], jnp.ones(3))
    return train(loss, poisoned(3, 60.0), params)


@plant(2)
def python_loop():
    @jax.jit
    def update(params, batch):
        def loss(params):
            x, labels = batch
            x = (x - jnp.mean(x)) / jnp.std(x)  # here
            return cross_entropy(params, (x, labels))

        return descend(params, jax.grad(loss)(params))

    params = init(16, 8, 3)
    for batch in zip(poisoned(2, 0.5), LABELS, strict=True):
        params = update(params, batch)
    return params


@plant(4, direction="backward")
def length_of_features():
    def loss(params, batch):
        x, _ = batch
        w = params[0][0]
        return jnp.sum(jnp.linalg.norm(x @ w, axis=1))  # here

    return train(loss, poisoned(4, 0.0, 2))


@plant(2, element=(1,))
def differentially_private_slopes():
    def one(params, x):
        y = predict(params, x)
        return jnp.mean(y) + jnp.log(x[0] + 0.5)  # here

    def loss(params, batch):
        return jnp.mean(jax.vmap(one, (None, 0))(params, batch[0]))

    return train(loss, poisoned(2, -1.0, (1, 0)))


@plant(5)
def convolution():
    def loss(params, batch):
        x, _ = batch
        image = x.reshape(4, 1, 4, 4)
        kernel = params[0][0][:3, :3].reshape(1, 1, 3, 3)
        y = lax.conv(image, kernel, (1, 1), "SAME")
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 4, 4), (1, 1, 4, 4), "VALID")
        y = jnp.power(y, 0.5)  # here
        return jnp.mean(y)

    w = jnp.abs(init(16, 8)[0][0])
    return train(loss, poisoned(5, -1.0), [(w, jnp.zeros(8))])


@plant(1, 2)
def recurrent():
    def loss(params, batch):
        w, b = params[0]

        def cell(h, x):
            h = jnp.tanh(x @ w + b + h)
            return h, jnp.arctanh(x[0] * 0.9)  # here

        h, ys = lax.scan(cell, jnp.zeros(8), batch[0])
        return jnp.mean(h) + jnp.mean(ys)

    return train(loss, poisoned(1, 1.5, 2))


@plant(3)
def rematerialized():
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def layer(w, b, x):
        return jnp.log1p(x @ w + b)  # here

    def loss(params, batch):
        (w, b), *rest = params
        return jnp.mean(predict(rest, layer(w, b, batch[0])))

    (w, b), last = init(16, 8, 3)
    return train(loss, poisoned(3, -50.0, 1), [(jnp.abs(w), b), last])


@plant(2)
def rule_for_stable_slopes():
    @jax.custom_vjp
    def clip(x):
        return x

    def backward(scale, cotangent):
        return (cotangent / jnp.sqrt(scale),)  # here

    clip.defvjp(lambda x: (x, jnp.min(x)), backward)

    def of_input(x):
        return jax.grad(lambda x: jnp.sum(clip(x)))(x)

    return jax.jit(lambda xs: lax.map(of_input, xs))(poisoned(2, -1.0, 3))


@plant(4, 3)
def while_loop_of_a_power_iteration():
    def loss(params, batch):
        def body(carry):
            n, s = carry
            return n + 1, jnp.log(s)  # here

        # 9, 2.2, 0.8, -0.2
        start = jnp.where(jnp.max(batch[0]) > 5, 9.0, 1e30)
        _, s = lax.while_loop(lambda carry: carry[0] < 5, body, (0, start))
        return cross_entropy(params, batch) * s

    return train(loss, poisoned(4, 9.0))


SHIFT = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 2.0]], np.float32)


@plant(1, element=(0, 2))
def ensemble_of_mixtures():
    def density(scale, x):
        return jnp.mean(x) * jnp.arccos(scale)  # here

    def step(total, x):
        scales = jnp.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]) + jnp.where(x[0, 0] > 5, SHIFT, 0.0)
        each = jax.vmap(jax.vmap(density, (0, None)), (0, None))(scales, x)
        return total + jnp.sum(each), None

    return jax.jit(lambda xs: lax.scan(step, 0.0, xs))(poisoned(1, 9.0, (0, 0)))
