"""Under `shard_map`, the numbers name the shard that they are of. Needs four devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jupyter_jaxcb as jaxcb

SHARDS = 4
DATA, STEPS = PartitionSpec("d"), 3
VALUES = np.random.default_rng(0).normal(size=(SHARDS, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def mesh():
    devices = jax.devices()
    assert len(devices) >= SHARDS
    return Mesh(np.array(devices[:SHARDS]), ("d",))


def add_up(x):
    y = x * 3

    def step(c, n):
        z = jnp.log(c) * (1.0 + n)
        return c + 1, z

    return jax.lax.scan(step, y.sum(), jnp.arange(float(STEPS)))


def on(mesh, function):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=DATA, out_specs=DATA))


def of_each_element(x):
    return jax.vmap(lambda x: add_up(x)[1])(x)


def test_rows_and_series_have_the_numbers_of_each_shard(mesh):
    with jaxcb.watching("y") as seen:
        jax.block_until_ready(on(mesh, of_each_element)(VALUES))
    found = {row.shard: (row.element, row.mean) for row in seen.rows}
    assert sorted(found) == [0, 1, 2, 3]
    assert {element for element, _ in found.values()} == {(0,)}
    expected = 3 * VALUES.mean(axis=1)
    np.testing.assert_allclose([found[n][1] for n in range(SHARDS)], expected, rtol=1e-5)
    (y,) = seen.series
    assert (y.shards, y.count, y.steps.shape) == (SHARDS, 1, (1, 0))
    np.testing.assert_allclose(y.mean, [expected], rtol=1e-5)
    assert "on 4 shards" in str(seen)


def test_first_bad_value_has_its_shard_step_and_element(mesh):
    values = np.ones((2 * SHARDS, 2), np.float32)
    values[5] = -0.2  # of shard 2; its sum, times 3, is -1.2
    with jaxcb.watching(first="nan") as seen:
        jax.block_until_ready(on(mesh, of_each_element)(values))
    bad = seen.first_bad
    assert (bad.shard, bad.steps, bad.element) == (2, (0,), (1,))
    assert "gave NaN in step 0, shard 2, element 1, forward" in str(bad)


def test_columns_of_many_shards_and_elements_are_together(mesh):
    values = np.abs(np.random.default_rng(1).normal(size=(5 * SHARDS, 2))).astype(np.float32)
    with jaxcb.watching("y", norm=jnp.linalg.norm) as seen:
        jax.block_until_ready(on(mesh, of_each_element)(values))
    (y,) = seen.series
    assert y.mean.shape == (1, 1)
    all_of_them = y.min, y.mean, y.max, y.own["norm"]
    norms = np.linalg.norm(3 * values, axis=1)
    expected = 3 * values.min(), 3 * values.mean(), 3 * values.max(), norms.mean()
    np.testing.assert_allclose([x.item() for x in all_of_them], expected, rtol=1e-5)


def test_sink_gets_the_mean_of_all_shards_once_for_each_step(mesh):
    values, got = np.abs(VALUES), []
    with jaxcb.watching("z", to=lambda step, values: got.append((step, values["z"]))):
        jax.block_until_ready(on(mesh, of_each_element)(values))
    sums = 3 * values.sum(axis=1)
    expected = [(np.log(sums + n) * (1 + n)).mean() for n in range(STEPS)]
    assert [step for step, _ in got] == [*range(STEPS)]
    np.testing.assert_allclose([z for _, z in got], expected, rtol=1e-4, atol=1e-5)


def test_shards_of_different_branches_are_shown_in_the_order_of_time(mesh):
    def f(x):
        def doubled(x):
            y = x * 2
            return y

        return jax.lax.cond(x[0] > 2, doubled, lambda x: x, x)

    got = []
    with jaxcb.watching("y", to=lambda step, values: got.append(values["y"])) as seen:
        jax.block_until_ready(on(mesh, f)(np.float32([1, 3, 5, 1])))
    assert sorted((row.shard, row.mean) for row in seen.rows) == [(1, 6.0), (2, 10.0)]
    (y,) = seen.series
    assert y.mean.sum() == 16.0
    assert got == [8.0]


def test_numbers_of_sharded_arrays_under_jit_are_of_the_whole_array(mesh):
    def f(x):
        y = x * 2
        return y

    with jaxcb.watching("y") as seen:
        jax.block_until_ready(jax.jit(f)(jax.device_put(VALUES, NamedSharding(mesh, DATA))))
    (row,) = seen.rows
    assert row.shard is None
    np.testing.assert_allclose(row.mean, 2 * VALUES.mean(), rtol=1e-5)
