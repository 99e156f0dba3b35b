"""The text of lowered programs for a platform that is not present, by JAX's public function."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.lowering import _host_call

X = np.arange(3, dtype=np.float32)
JAX = {"pure": jax.pure_callback, "io": io_callback, "debug": jax.debug.callback}
OURS = {"pure": jaxcb.pure_callback, "io": jaxcb.io_callback, "debug": jaxcb.debug_callback}


def program(table):
    def f(x):
        table["io"](np.sin, x, x, ordered=True)
        table["debug"](np.sin, x)
        table["debug"](np.sin, x, ordered=True)
        return table["pure"](lambda x: (x, x[0]), (x, x[0]), x)

    return jax.jit(f)


def calls(table, platform):
    """Return the custom calls of the program, without the numbers that JAX assigns anew."""
    lowered = program(table).trace(X).lower(lowering_platforms=(platform,))
    return [
        re.sub(r"%\w+|index = \d+|\d+ : ui64", "_", line.strip())
        for line in lowered.as_text().splitlines()
        if "custom_call" in line
    ]


GPUS = ["cuda", "rocm", *(["oneapi"] if jax.__version_info__ >= (0, 12) else [])]


@pytest.mark.parametrize("platform", GPUS)
def test_gpu_gets_the_calls_of_the_cpu_with_another_target_name(platform):
    on_cpu = calls(OURS, "cpu")
    assert len(on_cpu) == 4
    assert calls(OURS, platform) == [
        line.replace("@xla_ffi_python_cpu_callback", "@xla_ffi_python_gpu_callback")
        for line in on_cpu
    ]


def test_buffer_callbacks_know_the_gpus_that_jaxs_own_know():
    def targets(buffer_callback):
        f = jax.jit(buffer_callback(lambda context, out, x: None, X))
        found = {}
        for platform in ("cuda", "rocm", "oneapi"):
            try:
                text = f.trace(X).lower(lowering_platforms=(platform,)).as_text()
            except ValueError as error:
                assert f"not supported on {platform} backend" in str(error)
            else:
                (found[platform],) = re.findall(r"custom_call @(\w+)", text)
        return found

    assert targets(jaxcb.buffer_callback) == targets(buffer_callback)
    assert list(targets(jaxcb.buffer_callback)) == GPUS


def test_operands_results_and_side_effects_are_those_of_jax():
    def types(line):
        return line.split("} : ")[-1], "has_side_effect = true" in line

    assert list(map(types, calls(OURS, "cpu"))) == list(map(types, calls(JAX, "cpu")))


def test_platform_without_a_direct_call_uses_jaxs_documented_api(monkeypatch):
    """A TPU, for example; this test removes the CPU from the table of direct calls."""
    monkeypatch.setattr(_host_call, "DIRECT", {})
    seen = []

    def host(x):
        seen.append(x.tolist())
        return x

    @jax.jit
    def f(x):
        x = jaxcb.io_callback(host, x, x, ordered=True) + 1
        x = jaxcb.io_callback(host, x, x, ordered=True) + 1
        jaxcb.debug_callback(host, x)
        return jnp.sum(jaxcb.pure_callback(np.sin, x, x))

    assert np.allclose(f(X), np.sin(X + 2).sum())
    jax.effects_barrier()
    assert sorted(seen) == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert seen.index([0, 1, 2]) < seen.index([1, 2, 3])


@pytest.mark.parametrize("replayed", [False, True])
def test_buffer_call_for_a_gpu_may_be_replayed_as_in_jax(replayed):
    def target(buffer_callback):
        call = buffer_callback(lambda *_: None, X, command_buffer_compatible=replayed)
        text = jax.jit(call).trace(X).lower(lowering_platforms=("cuda",)).as_text()
        return re.findall(r"custom_call @(\w+)", text)

    assert target(jaxcb.buffer_callback) == target(buffer_callback)
    assert target(jaxcb.buffer_callback)[0].endswith("_cmd_buffer") == replayed
