"""Watching changes no result, and raises nothing where the program alone does not."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import jet, pallas, sparse
from jax.sharding import Mesh, PartitionSpec

import jupyter_jaxcb as jaxcb

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def a_shard_map_without_jit():
    mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
    spec = PartitionSpec("d")
    f = jax.shard_map(lambda x: jnp.sin(x) * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    return f(jnp.arange(4.0)), jax.grad(lambda x: f(x).sum())(jnp.arange(4.0))


@program
def a_rule_that_computes_with_its_tangent():
    @jax.custom_jvp
    def f(x):
        y = jnp.sin(x)
        return y

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        tangent = jnp.cos(x) * t
        return f(x), tangent

    return jax.grad(f)(1.0), jax.jit(jax.hessian(f))(1.0)


@program
def an_empty_input():
    def join(x):
        y = jnp.concatenate([x, jnp.sin(x[:0])])
        return y

    return jax.jit(join)(jnp.arange(3.0)), lax.associative_scan(jnp.add, jnp.arange(5.0))


@program
def an_export():
    def f(x):
        y = jnp.sin(x)
        return lax.scan(lambda c, x: (c + x, c), 0.0, y)

    jitted = jax.jit(f)
    before = jitted(jnp.arange(5.0))
    (size,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jitted)(jax.ShapeDtypeStruct((size,), jnp.float32))
    return before, jax.export.deserialize(exported.serialize()).call(jnp.arange(5.0))


@program
def a_pallas_kernel_with_a_loop():
    def kernel(x_ref, out_ref):
        x = jnp.sin(x_ref[...])
        out_ref[...] = lax.fori_loop(0, 3, lambda _, c: c + x, x)

    shape = jax.ShapeDtypeStruct((8,), jnp.float32)
    return pallas.pallas_call(kernel, out_shape=shape, interpret=True)(jnp.arange(8.0))


@program
def a_taylor_series():
    def f(x):
        y = jnp.sin(x)
        return jax.jit(lambda y: y * x)(y)

    return jet.jet(f, (1.0,), ((1.0, 0.0),))


@program
def a_sparse_matrix():
    matrix = sparse.BCOO.fromdense(jnp.eye(3))
    return jax.jit(lambda m, x: m @ x)(matrix, jnp.arange(3.0)), matrix @ jnp.ones(3)


@program
def variables_that_are_no_trees():
    class Broken:
        pass

    def refuse(_):
        raise RuntimeError("cannot be flattened")

    jax.tree_util.register_pytree_node(Broken, refuse, lambda *_: Broken())
    unsorted, broken = {1: jnp.ones(1), "a": jnp.ones(2)}, [Broken(), jnp.ones(2)]
    return unsorted[1], broken[1]


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
@pytest.mark.parametrize("options", [{}, {"first": "both"}], ids=["rows", "first"])
def test_results_are_those_without_watching(run, options):
    expected = run()
    with jaxcb.watching(**options):
        results = run()
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, strict=True), results, expected
    )
