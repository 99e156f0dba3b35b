"""Fit small models with optimizers of optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import plant

BATCHES = np.linspace(0.5, 3.0, 32, dtype=np.float32).reshape(8, 4)


def poisoned(step, value, column=slice(None)):
    """Return batches of which one has another value."""
    batches = BATCHES.copy()
    batches[step, column] = value
    return batches


def fit(loss, batches, w=1.0, optimizer=None):
    """Train in one scan."""
    optimizer = optax.adam(1e-2) if optimizer is None else optimizer

    def step(carry, batch):
        w, state = carry
        value, slope = jax.value_and_grad(loss)(w, batch)
        updates, state = optimizer.update(slope, state, w)
        return (optax.apply_updates(w, updates), state), value

    @jax.jit
    def train(w, batches):
        return jax.lax.scan(step, (w, optimizer.init(w)), batches)

    return train(jnp.asarray(w), batches)


@plant(5)
def log_of_a_negative_number():
    def loss(w, x):
        features = jnp.log(x)  # here
        return jnp.mean((w * features - 1.0) ** 2)

    return fit(loss, poisoned(5, -1.0, 2))


@plant(11)
def weight_that_leaves_the_domain():
    def loss(w, x):
        root = jnp.sqrt(jax.lax.stop_gradient(w))  # here
        return w + root * 0.0

    return fit(loss, np.zeros((16, 1), np.float32), 1.05, optax.sgd(0.1))


@plant(2)
def mean_of_nothing_in_a_python_loop():
    optimizer = optax.adamw(1e-2)

    def loss(w, x):
        mask = x > 1.0
        total = jnp.sum(jnp.where(mask, (w * x - 2.0) ** 2, 0.0))
        return total / jnp.sum(mask)  # here

    @jax.jit
    def step(w, state, x):
        value, slope = jax.value_and_grad(loss)(w, x)
        updates, state = optimizer.update(slope, state, w)
        return optax.apply_updates(w, updates), state, value

    w = jnp.float32(1.0)
    state = optimizer.init(w)
    for x in poisoned(4, 0.1)[2:]:
        w, state, value = step(w, state, x)
    return w, value


@plant(0, direction="backward")
def penalty_at_zero():
    def loss(w, x):
        distance = jnp.sqrt(jnp.sum(w**2))  # here
        return jnp.mean((x - w[0]) ** 2) + 0.1 * distance

    return fit(loss, BATCHES, np.zeros(3, np.float32))


@plant(6, direction="backward")
def where_hides_a_bad_root():
    def loss(w, x):
        z = w * x
        y = jnp.where(z > 0, jnp.sqrt(z), 0.0)  # here
        return jnp.mean(y)

    return fit(loss, poisoned(6, 0.0, 1))


@plant(3, element=(2,))
def one_example_of_a_batch():
    def one(w, x):
        logit = w * x - 0.2
        return jnp.log(logit)  # here

    return fit(lambda w, x: jnp.mean(jax.vmap(one, (None, 0))(w, x)), poisoned(3, 0.0, 2))


@plant(2, 3)
def while_loop_in_the_optimizer():
    def scale(updates, count, params=None):
        def body(carry):
            n, scale = carry
            return n + 1, jnp.log(scale)  # here

        start = jnp.where(count == 2, 9.0, 1e30)  # 2.2, 0.8, -0.2, NaN
        _, scale = jax.lax.while_loop(lambda carry: carry[0] < 5, body, (0, start))
        return updates * scale, count + 1

    own = optax.GradientTransformation(lambda w: jnp.int32(0), scale)
    return fit(lambda w, x: jnp.mean(w * x), BATCHES, optimizer=own)


@plant(4)
def branch_of_a_schedule():
    def schedule(count):
        return jax.lax.cond(
            count < 4,
            lambda n: 0.1 * n,
            lambda n: jnp.arccos(n - 2.0),  # here
            count.astype(jnp.float32),
        )

    def loss(w, x):
        return jnp.mean((w * x - 1.0) ** 2)

    return fit(loss, BATCHES, optimizer=optax.sgd(schedule))


@plant(5)
def rematerialized_layer():
    @jax.checkpoint
    def layer(w, x):
        h = jnp.tanh(w * x)
        return jnp.power(h, 0.5)  # here

    def loss(w, x):
        return jnp.mean(layer(w, x))

    return fit(loss, poisoned(5, -2.0, 0), 0.7)


@plant(6)
def transformation_of_the_user():
    def sign(updates, state, params=None):
        return updates / jnp.abs(updates), state  # here

    own = optax.GradientTransformation(lambda w: optax.EmptyState(), sign)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), own, optax.scale(-1e-2))
    return fit(lambda w, x: jnp.mean(w * x), poisoned(6, 0.0), optimizer=optimizer)
