"""Buffer callbacks in programs over two devices, and with device memory as on a GPU."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.flavors.buffer import _buffer, _lowering


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("devices.py"), devices=2).value


@pytest.mark.parametrize(
    "name", ["shard_map", "shard_map with a side effect", "shard_map with an alias", "pmap"]
)
def test_each_device_calls_with_its_shard_and_the_recording_names_it(found, name):
    row = found[name]
    assert row["seen"] == [[0.0, 1.0], [2.0, 3.0]]
    assert row["shards"] == ["0", "1"]
    assert row["result"] == [1.0, 2.0, 3.0, 4.0]
    assert (row["calls"], row["expected"]) == (2, 2)


def test_side_effect_that_every_device_would_repeat_is_refused(found):
    kind, words, _ = found["jit with a side effect"]
    assert kind == "NotImplementedError"
    assert "each would repeat its side effect. Call it in jax.shard_map" in words


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Treat memory as if numpy could not read it, so host functions get JAX's own buffers."""
    for module in (_buffer, _lowering):
        monkeypatch.setattr(module, "HOST_MEMORY", frozenset())


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("compiled", [False, True])
def test_host_function_gets_device_memory_as_jaxs_buffers(x, compiled):
    kinds = []

    @jaxcb.buffer(result="x")
    def host(out, x):
        kinds.append((type(out).__name__, type(x).__name__))
        np.asarray(out)[...] = np.asarray(x) + 1

    call = jax.jit(host) if compiled else host
    with jaxcb.record() as r:
        assert call(x).tolist() == (np.asarray(x) + 1).tolist()
    assert kinds == [("Buffer", "Buffer")]
    assert len(r.recording) == 1
    assert [sample.operands for sample in r.recording.sample_values] == [()]


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("in_axes", [(0, None), (None, 1), (1, 0)])
def test_program_itself_loops_over_elements_in_device_memory(in_axes):
    shapes = []

    @jaxcb.buffer(result="x")
    def host(out, x, y):
        shapes.append((np.asarray(out).shape, np.asarray(x).shape))
        np.asarray(out)[...] = np.asarray(x) * np.asarray(y)

    x, y = (jnp.arange(9, dtype=jnp.float32).reshape(3, 3) for _ in range(2))
    nested = jax.vmap(jax.vmap(host, in_axes), (0, 0))
    expected = jax.vmap(jax.vmap(jnp.multiply, in_axes), (0, 0))
    args = [
        jnp.stack([x, x + 1]) if axis is not None else jnp.stack([x[0], x[1]])
        for x, axis in zip((x, y), in_axes, strict=True)
    ]
    with jaxcb.record() as r:
        found = jax.jit(nested)(*args)
    assert np.array_equal(found, expected(*args))
    assert shapes == [((3,), (3,))] * 6
    assert len(r.recording) == 6


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize(("method", "seen"), [("sequential", [1, 3]), ("expand_dims", [6])])
@pytest.mark.parametrize("has_side_effect", [False, True])
def test_program_itself_looks_at_a_mask_in_device_memory(method, seen, has_side_effect):
    """One call for a batch gets all of it there."""
    made = []

    @jaxcb.buffer(result="x", vmap_method=method, has_side_effect=has_side_effect)
    def host(out, x):
        x = np.asarray(x)
        made.append(int(x.sum()))
        np.asarray(out)[...] = 2 * x

    x = np.arange(4)
    call = jax.jit(jax.vmap(lambda mask, x: host.where(mask, x, otherwise=-1)))
    assert call(x % 2 == 1, x).tolist() == [-1, 2, -1, 6]
    assert made == seen
    assert call(x > 3, x).tolist() == [-1] * 4
    assert made == seen
