"""Call JAX's own callbacks in a ``shard_map`` on four CPU devices while they are observed.

test_not_varying.py runs this in a separate process. It prints a JSON object: for each program, the
line of the call and the warnings as pairs of line and text.
"""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

MESH = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
BOTH = P(("a", "b"))
X = np.linspace(0.1, 1, 8, dtype=np.float32)


def sine(x):
    return np.sin(x)


def fill(context, out, x):
    np.asarray(out)[...] = np.asarray(x)


def pure(x):
    return jax.pure_callback(sine, x, x)


def io(x):
    return io_callback(sine, x, x)


def buffer(x):
    return buffer_callback(fill, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def debug(x):
    jax.debug.callback(sine, x)
    return x


def ours(x):
    return jaxcb.pure_callback(sine, x, x)


def cast(x):
    y = pure(x)
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(y, ("a", "b"), to="varying")
    return jax.lax.pvary(y, ("a", "b"))


def cast_and_not(x):
    y = pure(x)
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(y, ("a", "b"), to="varying") + jnp.sum(y)
    return jax.lax.pvary(y, ("a", "b")) + jnp.sum(y)


def warned(function, spec=BOTH, around=jax.jit, **options):
    def total(x):
        return jax.lax.psum(function(x).sum(), ("a", "b"))

    mapped = jax.shard_map(total, mesh=MESH, in_specs=spec, out_specs=P(), **options)
    with warnings.catch_warnings(record=True) as caught, jaxcb.observe_jax():
        warnings.simplefilter("always")
        jax.block_until_ready(around(mapped)(X))
    return [[one.lineno, str(one.message)] for one in caught]


def main():
    flavors = (pure, io, buffer, debug, ours, cast, cast_and_not)
    found = {f.__name__: warned(f) for f in flavors}
    found["cast, without jit"] = warned(cast, around=lambda f: f)
    found["one axis"] = warned(pure, P("b"))
    found["no axis"] = warned(pure, P())
    found["not checked"] = warned(pure, check_vma=False)
    found["line"] = pure.__code__.co_firstlineno + 1
    print(json.dumps(found))


main()
