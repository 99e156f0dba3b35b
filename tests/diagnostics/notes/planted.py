"""Programs with a planted NaN: the line with the comment "here", the steps and the element."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PLANTED = {}
PASSES = np.array([4.0, 2.0, 3.0, -1.0, 5.0], np.float32)  # bad at index 3


def planted(steps=(), element=(), direction="forward", args=(), jit=True):
    """Register a program."""

    def register(program):
        PLANTED[program.__name__] = (program, steps, element, direction, args, jit)
        return program

    return register


@planted(args=(-1.0,))
def straight(x):
    y = x * 2
    z = jnp.log(y)  # here
    return z + 1


@planted(args=(0.0, 0.0))
def division(x, s):
    return x / s * 3  # here


@planted(steps=(3,), args=(PASSES,))
def scan_over_array(xs):
    def step(c, x):
        c = c + jnp.sqrt(x)  # here
        return c, c * 2

    return lax.scan(step, 0.0, xs)


@planted(steps=(1,), args=(PASSES,))
def scan_reverse(xs):
    def step(c, x):
        c = c + jnp.sqrt(x)  # here
        return c, c * 2

    return lax.scan(step, 0.0, xs, reverse=True)


@planted(steps=(2, 3), args=(PASSES,))
def scan_in_scan(xs):
    def outer(c, i):
        def inner(d, x):
            y = jnp.where(i == 2, x, 1.0)
            return d + jnp.log(y), None  # here

        return lax.scan(inner, c, xs)[0], None

    return lax.scan(outer, 0.0, jnp.arange(4))


@planted(steps=(2,), args=(3.0,))
def while_loop(x):
    def body(c):
        i, x = c
        y = x - 1.0
        return i + 1, jnp.sqrt(y)  # here

    return lax.while_loop(lambda c: c[0] < 5, body, (0, x))


@planted(steps=(3,), args=(PASSES,))
def fori_loop(xs):
    return lax.fori_loop(0, 5, lambda i, c: c + jnp.log(xs[i]), 0.0)  # here


@planted(steps=(3,), args=(PASSES, 5))
def fori_loop_of_unknown_length(xs, n):
    return lax.fori_loop(0, n, lambda i, c: c + jnp.log(xs[i]), 0.0)  # here


@planted(steps=(3,), args=(PASSES,))
def mapped(xs):
    def one(x):
        return jnp.log(x)  # here

    return lax.map(one, xs)


@planted(args=(-2.0,))
def branch(x):
    def bad(x):
        return jnp.sqrt(x)  # here

    return lax.cond(x < 0, bad, lambda x: x, x)


@planted(args=(1, -2.0))
def switched(k, x):
    branches = [
        lambda x: x,
        lambda x: jnp.sqrt(x),  # here
        lambda x: x * 2,
    ]
    return lax.switch(k, branches, x)


@planted(steps=(3,), args=(PASSES,))
def branch_in_scan(xs):
    def step(c, x):
        y = lax.cond(x < 0, lambda x: jnp.log(x), lambda x: x, x)  # here
        return c + y, None

    return lax.scan(step, 0.0, xs)


@planted(element=(3,), args=(PASSES,))
def vmapped(xs):
    return jax.vmap(lambda x: jnp.log(x))(xs)  # here


@planted(element=(3,), args=(PASSES,))
def vmap_of_branch(xs):
    def one(x):
        def negative(x):
            return jnp.sqrt(x)  # here

        return lax.cond(x < 0, negative, lambda x: jnp.sqrt(x), x)

    return jax.vmap(one)(xs)


@planted(steps=(2,), element=(1,), args=(np.array([1, 5]), np.array([1.5, 3.0], np.float32)))
def vmap_of_while(n, x):
    def one(n, x):
        def body(c):
            i, x = c
            return i + 1, jnp.sqrt(x - 1.0)  # here

        return lax.while_loop(lambda c: c[0] < n, body, (0, x))

    return jax.vmap(one)(n, x)


@planted(steps=(1,), element=(2,), args=(np.array([[4, 1, 9], [4, 1, -9]], np.float32),))
def vmap_of_scan(xs):
    def one(x):
        return lax.scan(lambda c, x: (c + jnp.sqrt(x), None), 0.0, x)  # here

    return jax.vmap(one, in_axes=1)(xs)


@planted(steps=(3,), element=(1,), args=(PASSES,))
def scan_of_vmap(xs):
    def step(c, x):
        return c + jax.vmap(lambda k: jnp.log(x * k))(jnp.array([-1.0, 1.0])).sum(), None  # here

    return lax.scan(lambda c, x: step(c, jnp.where(x > 0, -x * 0.0 + 0.0, x)), 0.0, xs)


@planted(element=(1, 2), args=(np.array([[1, 2, 3], [4, 5, -6]], np.float32),))
def vmap_of_vmap(xs):
    return jax.vmap(jax.vmap(lambda x: jnp.log(x)))(xs)  # here


@planted(element=(1, 2), args=(np.array([[1, 2, 3], [4, 5, -6]], np.float32).T.copy(),))
def vmap_of_vmap_over_other_axes(xs):
    return jax.vmap(jax.vmap(lambda x: jnp.log(x)), in_axes=1)(xs)  # here


@planted(args=(0.0,), direction="backward")
def gradient_of_sqrt(x):
    def f(x):
        y = x * x
        z = jnp.sqrt(y)  # here
        return z * 0.0

    return jax.grad(f)(x)


@planted(args=(0.0,), direction="backward")
def gradient_of_norm(x):
    def norm(v):
        total = jnp.sum(v * v)  # here
        return jnp.sqrt(total)

    return jax.grad(lambda x: norm(jnp.stack([x, x])))(x)


@planted(steps=(3,), args=(np.array([4.0, 2.0, 3.0, 0.0, 5.0], np.float32),), direction="backward")
def gradient_of_scan(xs):
    def step(c, x):
        y = x * 2.0
        return c + jnp.arctan2(y, y) * 1.0, None  # here

    return jax.grad(lambda xs: lax.scan(step, 0.0, xs)[0])(xs)


@planted(steps=(3,), args=(np.array([4.0, 2.0, 3.0, 0.0, 5.0], np.float32),), direction="backward")
def gradient_in_scan(xs):
    def loss(x):
        return jnp.arctan2(x, x)  # here

    return lax.scan(lambda c, x: (c + jax.grad(loss)(x), None), 0.0, xs)


@planted(steps=(3,), args=(PASSES,))
def forward_of_gradient_of_scan(xs):
    def step(c, x):
        return c + jnp.log(x), None  # here

    return jax.grad(lambda xs: lax.scan(step, 0.0, xs)[0])(xs)


@planted(args=(-1.0,))
def checkpoint(x):
    @jax.checkpoint
    def f(x):
        return jnp.log(x) * x  # here

    return jax.grad(f)(x)


@planted(steps=(3,), args=(PASSES,))
def scan_of_checkpoint(xs):
    @jax.checkpoint
    def step(c, x):
        return c * 0.5 + jnp.log(x), None  # here

    return jax.grad(lambda xs: lax.scan(step, 0.0, xs)[0])(xs)


@planted(steps=(3,), args=(PASSES,))
def custom_jvp_in_scan(xs):
    @jax.custom_jvp
    def f(x):
        return jnp.log(x)  # here

    f.defjvp(lambda p, t: (f(p[0]), t[0]))
    return lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)


@planted(args=(PASSES,))  # the step is unknown: JAX traces the rule without the loop
def custom_vjp_forward_in_scan(xs):
    @jax.custom_vjp
    def f(x):
        return x

    def forward(x):
        return jnp.log(x), x  # here

    f.defvjp(forward, lambda x, g: (g * x,))
    return jax.grad(lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0])(xs)


@planted(steps=(3,), args=(PASSES,))
def custom_vjp_backward_of_gradient_in_scan(xs):
    @jax.custom_vjp
    def f(x):
        return x

    def backward(x, g):
        return (g * jnp.log(x),)  # here

    f.defvjp(lambda x: (x, x), backward)
    return lax.scan(lambda c, x: (c + jax.grad(f)(x), None), 0.0, xs)


@jax.jit
def _jitted(x):
    return jnp.log(x) * 2  # shared


@planted(steps=(3,), args=(PASSES,))
def jit_in_two_scans(xs):
    a = lax.scan(lambda c, x: (c + _jitted(jnp.abs(x)), None), 0.0, xs)
    return a, lax.scan(lambda c, x: (c + _jitted(x), None), 0.0, xs)


@planted(steps=(3,), args=(PASSES,))
def gradient_of_jit_in_scan(xs):
    f = jax.jit(lambda x: jnp.sqrt(x) * 2)  # here
    return lax.scan(lambda c, x: (c + jax.grad(f)(x), None), 0.0, xs)


@planted(steps=(3,), args=(PASSES,))
def training(xs):
    def model(w, x):
        h = jnp.tanh(x * w)
        return jnp.sqrt(h + 0.2)  # here

    def step(w, x):
        value, slope = jax.value_and_grad(lambda w: model(w, x) ** 2)(w)
        return w - 0.01 * slope, value

    return lax.scan(step, 0.5, xs)


@planted(element=(3,), args=(PASSES,), jit=False)
def vmap_without_jit(xs):
    return jax.vmap(lambda x: jnp.log(x) + 1)(xs)  # here


@planted(steps=(2, 3), args=(PASSES,))
def jaxpr_evaluated_in_a_loop(xs):  # as equinox does
    def outer(x):
        def inner(c, x):
            return c + jax.jit(jnp.log)(x), None  # here

        both = lax.cond(x < 0, lambda xs: lax.scan(inner, 0.0, xs)[0], lambda xs: 0.0, xs)
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + both), (0, 0.0))[1]

    closed = jax.make_jaxpr(outer)(1.0)

    def step(c, x):
        return c + jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0], None

    return lax.scan(step, 0.0, jnp.array([1.0, 2.0, -1.0]))


@planted(steps=(3,), args=(PASSES,))
def linearized_in_and_outside_of_a_loop(xs):  # as optimistix does
    def linear(x):
        value, tangent = jax.linearize(lambda x: jnp.log(x) * x, x)  # here
        tangent, constants = jax.closure_convert(tangent, x)
        return value, constants

    def step(c, x):
        return linear(x), c[0]

    return lax.scan(step, linear(xs[0]), xs)


@planted(steps=(3,), args=(PASSES,))
def shard_map_in_scan(xs):
    def shard(x):
        return jnp.log(x) * 2  # here

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    spec = jax.sharding.PartitionSpec("d")
    f = jax.shard_map(shard, mesh=mesh, in_specs=spec, out_specs=spec)
    return lax.scan(lambda c, x: (c + f(x[None])[0], None), 0.0, xs)


@planted(steps=(3,), args=(PASSES,))
def linear_solve_in_scan(xs):
    def step(c, x):
        def matrix(v):
            return v * jnp.sqrt(x)  # here

        def solve(matvec, b):
            return b / matvec(jnp.ones(()))

        return c + lax.custom_linear_solve(matrix, x, solve, solve), None

    return lax.scan(step, 0.0, xs)


@planted(steps=(3,), element=(1,), args=(np.array([3.0, 4.0, 9.0], np.float32),))
def predicate_of_a_batched_while(xs):
    def one(x):
        def goes_on(c):
            return jnp.sqrt(c - x / 2) < 2  # here

        return lax.while_loop(goes_on, lambda c: c - jnp.where(x == 4, 1.0, -1.0), x)

    return jax.vmap(one)(xs)


@planted(args=(1.0,))
def data_that_is_a_constant(w):
    return w * jnp.log(PASSES)  # here


@planted(steps=(3,), args=(PASSES,))
def another_is_hidden_before(xs):
    def step(c, x):
        y = jnp.where(x > 3, jnp.log(x - 3) * 2, x)
        return c + jnp.sqrt(y), None  # here

    return lax.scan(step, 0.0, xs)


@planted(steps=(3,), args=(PASSES,))
def partial_function(xs):
    def step(k, c, x):
        return c + k * jnp.log(x), None  # here

    return lax.scan(functools.partial(step, 2.0), 0.0, xs)
