"""Masked calls in an executor, in the queue, on several devices and from several threads."""

import collections
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue
from tests._threads import in_threads

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


def test_executor_calls_without_arguments_where_the_mask_is_true():
    made = []
    f = jaxcb.io(lambda: made.append(1), result=None, executor="threads:2")
    jax.jit(jax.vmap(lambda mask: f.where(mask)))(X > 8)
    jax.effects_barrier()
    assert len(made) == 3


def test_failing_element_in_an_executor_is_named():
    def host(x):
        if x == 6:
            raise ValueError("no luck")
        return x

    f = jaxcb.io(host, result="x", executor="threads:2", chunksize=1)
    with jaxcb.record() as r, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        masked(f)(X)
    assert str(jaxcb.host_error(raised.value)) == "no luck"
    assert [call.element for call in r.recording if call.error] == [6]


def test_queue_gets_only_crossings_that_are_needed():
    seen = []
    log = jaxcb.debug(lambda i, x: seen.append((int(i), float(x))), queued=True)

    @jax.jit
    def program(x):
        def step(i, y):
            jax.vmap(lambda x: log.where((i == 2) & (x > 9), i, x))(x)
            return y

        return jax.lax.fori_loop(0, 4, step, 0)

    with jaxcb.record() as r:
        before = queue.added
        program(X)
        jax.effects_barrier()
        assert queue.added == before + 1
    assert seen == [(2, 10.0), (2, 11.0)]
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


def test_each_device_tests_the_mask_of_its_own_shard(on_devices):
    row = on_devices["partitioned"]
    assert row["seen"] == [0, 6]
    assert row["counts"] == [4, 2]


def test_several_threads_make_masked_calls_of_one_program():
    calls = collections.Counter()
    f = jaxcb.io(lambda x: (calls.update([int(x)]), 2 * x)[1], result="x")
    program, wrong = masked(f), []

    def run(shift):
        for n in range(20):
            x = X + shift * 100 + n
            found = np.asarray(program(x))
            wrong.extend(np.flatnonzero(found != np.where(x % 3 == 0, 2 * x, -1)))

    in_threads(run, range(4))
    assert not wrong
    assert sum(calls.values()) == 4 * 20 * 4
