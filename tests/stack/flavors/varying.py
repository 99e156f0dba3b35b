"""Use callbacks inside ``shard_map`` on four CPU devices, where JAX tracks what varies.

test_varying.py runs this in a separate process. It prints a JSON object: for each program, its
result and the one that NumPy or an operation of JAX gives, or the name and text of an error.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

MESH = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
GRID = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
X = np.linspace(0.1, 1, 8, dtype=np.float32)
SLOPE = 2 / np.sqrt(np.pi) * np.exp(-(X**2))
A = np.float32(0.5)


def erf(x):
    return scipy.special.erf(x).astype(np.float32)


def plus_one(x):
    return x + np.float32(1)


def product(a, x):
    return (a * x).astype(np.float32)


def fill_double(out, x):
    out[...] = 2 * x


SHARDED, SHARED = P("d"), P()


def shard_map(f, specs=SHARDED, out=SHARED, mesh=MESH):
    return jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out)


def made(rule, function, result):
    """Return `function` as a pure callback with the derivative of erf or of a product."""
    own = {"derivative": "finite"} if rule == "finite" else {}
    callback = jaxcb.pure(function, result=result, vmap_method="expand_dims", **own)
    if function is erf and rule == "jvp":
        callback.defjvp(lambda p, t: (callback(*p), t[0] * slopes(p[0])))
    elif function is erf and rule == "vjp":
        callback.defvjp(lambda x: (callback(x), x), lambda x, ct: (ct * slopes(x),))
    elif rule == "jvp":
        callback.defjvp(lambda p, t: (callback(*p), t[0] * p[1] + p[0] * t[1]))
    elif rule == "vjp":
        callback.defvjp(
            lambda a, x: (callback(a, x), (a, x)),
            lambda kept, ct: ((ct * kept[1]).sum(), ct * kept[0]),
        )
    return callback


def slopes(x):
    return 2 / np.sqrt(np.pi) * jnp.exp(-(x**2))


def gradient(rule):
    callback = made(rule, erf, "x")
    return jax.grad(shard_map(lambda x: jax.lax.psum(callback(x).sum(), "d")))(X), SLOPE


def gradient_of_replicated(rule):
    """Differentiate by an argument that is the same on all devices; the other varies."""
    callback = made(rule, product, "x")
    total = shard_map(lambda a, x: jax.lax.psum(callback(a, x).sum(), "d"), (P(), P("d")))
    return jax.grad(total)(A, X), X.sum()


def gradient_of_masked(rule):
    callback = made(rule, erf, "x")

    def total(x):
        return jax.lax.psum(callback.where(x.sum() > 1, x, otherwise=0.0).sum(), "d")

    return jax.grad(shard_map(total))(X), np.where(X.reshape(4, 2).sum(1) > 1, 1, 0).repeat(
        2
    ) * SLOPE


def gradient_of_vmapped(method):
    callback = jaxcb.pure(erf, result="x", vmap_method=method)
    callback.defvjp(lambda x: (callback(x), x), lambda x, ct: (ct * slopes(x),))
    total = shard_map(lambda x: jax.lax.psum(jax.vmap(callback)(x).sum(), "d"))
    return jax.grad(total)(X), SLOPE


def gradient_over_two_axes():
    """One argument varies over one axis of a grid, the other over the other one."""
    callback = made("jvp", product, "x")
    total = shard_map(
        lambda a, x: jax.lax.psum(callback(a.sum(), x).sum(), ("a", "b")),
        (P("a"), P("b")),
        mesh=GRID,
    )
    return jax.grad(total)(X[:2], X), np.full(2, X.sum())


def carried(callback):
    def loop(x):
        return jax.lax.scan(lambda c, _: (callback(c), None), x, length=2)[0]

    return shard_map(loop, out=P("d"))(X)


def carried_by_while(callback):
    def loop(x):
        return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, callback(c[1])), (0, x))

    return shard_map(lambda x: loop(x)[1], out=P("d"))(X)


def in_branch(callback):
    def choose(x):
        return jax.lax.cond(x.sum() > 0, callback, lambda x: x, x)

    return shard_map(choose, out=P("d"))(X)


def replicated(callback):
    """A result of arguments that are the same on all devices is the same, too."""
    return shard_map(lambda a, x: callback(a), (P(), P("d")))(A, X)


def dropped(callback):
    return shard_map(callback)(X)


def tried(run):
    try:
        result = run()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if not isinstance(result, tuple):
        result = (result,)
    return {"values": [np.asarray(one).tolist() for one in result]}


def programs():
    for rule in ("jvp", "vjp", "finite"):
        yield f"gradient, {rule}", lambda rule=rule: gradient(rule)
        yield f"replicated, {rule}", lambda rule=rule: gradient_of_replicated(rule)
        yield f"masked, {rule}", lambda rule=rule: gradient_of_masked(rule)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        yield f"vmapped, {method}", lambda method=method: gradient_of_vmapped(method)
    yield "two axes", gradient_over_two_axes
    once = {
        "pure": jaxcb.pure(plus_one, result="x"),
        "io": jaxcb.io(plus_one, result="x"),
        "buffer": jaxcb.buffer(fill_double, result="x"),
        "tap": jaxcb.tap(lambda x: None),
        "drop-in pure": lambda x: jaxcb.pure_callback(plus_one, x, x),
        "drop-in io": lambda x: jaxcb.io_callback(plus_one, x, x),
    }
    for name, callback in once.items():
        for place in (carried, carried_by_while, in_branch, replicated, dropped):
            yield (
                f"{name}, {place.__name__}",
                lambda place=place, callback=callback: place(callback),
            )


print(json.dumps({name: tried(run) for name, run in programs()}))
