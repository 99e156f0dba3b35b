"""Masked calls in an executor, in the queue, on several devices and from several threads."""

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

X = jnp.arange(12, dtype=jnp.float32)
NEEDED = [0, 3, 6, 9]


def masked(f):
    return jax.jit(jax.vmap(lambda x: f.where(x % 3 == 0, x, otherwise=-1)))


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_executor_gets_the_needed_elements(executor, method, tmp_path):
    path = str(tmp_path / "seen")

    def host(x):
        import numpy as np

        with open(path, "a") as file:
            file.writelines(f"{n:.0f}\n" for n in np.ravel(x))
        return 2 * x

    f = jaxcb.io if method == "sequential" else jaxcb.pure
    options = {} if method == "sequential" else {"vmap_method": method}
    f = f(host, result="x", executor=executor, **options)
    with jaxcb.record() as r:
        found = masked(f)(X)
    np.testing.assert_array_equal(found, np.where(X % 3 == 0, 2 * X, -1))
    assert sorted(map(int, Path(path).read_text().split())) == NEEDED
    elements = NEEDED if method == "sequential" else [-1]
    assert sorted(call.element for call in r.recording) == elements
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (12, 4)


@settings(max_examples=25)
@given(st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([None, 1, 3]))
def test_threads_return_what_the_loop_returns(mask, chunksize):
    """One operand is mapped by both vmaps, one by the outer, and one by none."""

    def program(**options):
        f = jaxcb.pure(lambda x, y, z: x + y * z, result="x", **options)
        call = lambda m, x, y, z: f.where(m, x, y, z, otherwise=-1)  # noqa: E731
        inner = jax.vmap(call, in_axes=(0, 0, None, None))
        return jax.vmap(inner, in_axes=(0, 0, 0, None))(
            jnp.array(mask).reshape(2, 3), jnp.arange(12.0).reshape(2, 3, 2), jnp.ones((2, 2)), 3.0
        )

    np.testing.assert_array_equal(program(executor="threads:2", chunksize=chunksize), program())


def test_queue_gets_only_crossings_that_are_needed():
    """It has room for the last one of four, unless the others are in it."""
    seen, held = [], threading.Event()
    log = jaxcb.debug(
        lambda i, x: seen.append((int(i), float(x))), queued=True, on_full="drop", ordered=True
    )

    @jax.jit
    def program(x):
        def step(i, y):
            jax.vmap(lambda x: log.where((i == 3) & (x > 9), i, x))(x)
            return y

        return jax.lax.fori_loop(0, 4, step, 0)

    before = jaxcb.set_queue_limit(2_000)
    jaxcb.debug_callback(held.wait, queued=True)
    with jaxcb.record() as r:
        program(X).block_until_ready()
        held.set()
    jaxcb.set_queue_limit(before)
    assert seen == [(3, 10.0), (3, 11.0)]
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (48, 2)


@pytest.fixture(scope="module")
def on_devices(in_process):
    return in_process(Path(__file__).with_name("devices.py"), devices=4).value


@pytest.mark.parametrize("program", ["jit", "shard_map", "pmap", "eager", "buffer in shard_map"])
def test_masked_calls_on_several_devices(on_devices, program):
    row = on_devices[program]
    assert row["results"] == [0, -1, -2, 30, -4, -5, 60, -7]
    assert row["seen"] == [0, 3, 6]
    assert row["counts"] == [8, 3]


@pytest.mark.parametrize("program", ["buffer in jit", "buffer, eager"])
def test_each_device_makes_the_masked_calls_of_a_buffer_callback(on_devices, program):
    """As without a mask: each calls with the whole arrays."""
    row = on_devices[program]
    assert row["results"] == [0, -1, -2, 30, -4, -5, 60, -7]
    assert row["seen"] == [0] * 4 + [3] * 4 + [6] * 4
    assert row["counts"] == [32, 12]
