"""Differentiate linear callbacks on four CPU devices; print how far they are from dense algebra."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb


def main():
    jax.config.update("jax_enable_x64", True)
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    rng = np.random.default_rng(0)
    many, b, rows = rng.normal(size=(4, 3, 3)), rng.normal(size=3), rng.normal(size=(4, 3))

    def product(a, b):
        return a @ a @ b

    f = jaxcb.pure(product, result="b", linear="b")
    f.deftranspose(lambda a, ct: a.T @ a.T @ ct)

    def sharded(f, specs):
        def one(a, b):
            return f(a.reshape(3, 3), b.reshape(3))[None]

        return jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=P("d"))

    specs = {
        "both": ((P("d"), P("d")), (many, rows)),
        "replicated vector": ((P("d"), P()), (many, b)),
        "replicated matrix": ((P(), P("d")), (many[0], rows)),
    }

    def derivatives(f, spec, a, b):
        def of_b(b):
            return (sharded(f, spec)(a, b) ** 2).sum()

        def moved(b):
            return jax.jvp(lambda b: sharded(f, spec)(a, b), (b,), (b + 1,))[1]

        return jax.grad(of_b)(b), moved(b), jax.grad(lambda b: jax.grad(of_b)(b).sum())(b)

    found = {}
    for name, (spec, given) in specs.items():
        a, b = map(jnp.asarray, given)
        pair = (
            jax.jit(lambda a, b, g=g, s=spec: derivatives(g, s, a, b))(a, b) for g in (f, product)
        )
        found[name] = max(float(abs(x - y).max()) for x, y in zip(*pair, strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
