"""Programs of several threads and devices call compiled functions, each in its program's order."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _handler
from jupyter_jaxcb.capabilities.compiled._native import forever
from tests._threads import in_threads

SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.arange(8.0)


def compiled(function, result=SCALAR, flavor=jaxcb.pure, **options):
    return flavor(function, result=result, compile="numba", **options)


def test_several_threads_run_one_program_with_their_own_arguments():
    callback = compiled(lambda x: np.cumsum(x), "x")
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda _, x: callback(x) % 7, x))
    expected = [np.asarray(program(X + n)) for n in range(4)]

    def run(number):
        return [np.asarray(program(X + number)) for _ in range(100)]

    with jaxcb.record() as r:
        found = in_threads(run, range(4))
    for results, wanted in zip(found, expected, strict=True):
        assert all(np.array_equal(result, wanted) for result in results)
    assert len(r.recording) == 4 * 100 * 5
    assert len({call.crossing for call in r.recording}) == 4 * 100 * 5
    assert all(call.start_ns <= call.end_ns for call in r.recording)


@pytest.mark.long
def test_several_threads_compile_their_programs_side_by_side():
    def tripled(x):
        return x + x + x

    def run(number):
        callback = compiled(tripled, "x")
        x = np.ones((2,) * number, np.float32)
        program = jax.jit(lambda x: callback(x))
        return np.array_equal(program(x), 3 * x)

    assert in_threads(run, range(4)) == [True] * 4


def test_several_threads_are_counted_beyond_the_rows_of_the_log():
    count = 300_000
    add = compiled(lambda x: x + 1, flavor=jaxcb.io)
    program = jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda _, x: add(x), jnp.float32(0)))
    program(1).block_until_ready()
    with jaxcb.record() as r:
        assert [float(x) for x in in_threads(lambda _: program(count), range(4))] == [count] * 4
    assert len(r.recording) + r.recording.overflow == 4 * count


def test_calls_while_another_thread_rebinds_run_one_of_the_bodies():
    bodies = [lambda x: x + 1, lambda x: x + 2]
    callback = compiled(bodies[0])
    program = jax.jit(callback)
    program(0.0)

    def run(number):
        if number:
            return {float(program(0.0)) for _ in range(300)}
        for n in range(300):
            callback.host.rebind(bodies[n % 2])
        return {1.0}

    assert set().union(*in_threads(run, range(4))) <= {1.0, 2.0}
    assert float(program(0.0)) == 2


def test_ordered_callbacks_run_in_program_order(note):
    append, got = note
    first = compiled(lambda x: append(x), flavor=jaxcb.io, ordered=True)
    second = compiled(lambda x: append(-x - 1), flavor=jaxcb.io, ordered=True)

    def step(i, x):
        first(jnp.float32(i))
        second(jnp.float32(i))
        return x

    program = jax.jit(lambda: jax.lax.fori_loop(0, 50, step, 0))
    with jaxcb.record() as r:
        program().block_until_ready()
        jax.effects_barrier()
    assert got == [number for i in range(50) for number in (i, -i - 1)]
    assert len(r.recording) == 100


def test_ordered_compiled_and_python_callbacks_share_one_order(note):
    append, got = note
    in_machine_code = compiled(lambda x: append(x), flavor=jaxcb.io, ordered=True)
    in_python = jaxcb.io(lambda x: got.append(-float(x)), result=None, ordered=True)

    def program(x):
        for n in range(1, 6):
            in_machine_code(x * n)
            in_python(x * n)

    jax.jit(program)(1.0)
    jax.effects_barrier()
    assert got == [number for n in range(1, 6) for number in (n, -n)]


def test_ordered_results_and_failures_pass_the_token(failure):
    def checked(x):
        if x > 2:
            raise ValueError("no")
        return x + 1

    callback = compiled(checked, flavor=jaxcb.io, ordered=True)
    program = jax.jit(lambda x: callback(callback(x)))
    assert float(program(0.0)) == 2
    assert failure(program, 2.0)[0].args == ("no",)
    jax.clear_caches()  # JAX's token holds the failure


@pytest.fixture(scope="module")
def devices(in_process):
    return in_process(Path(__file__).with_name("devices.py"), devices=4).value


@pytest.mark.long
def test_program_over_several_devices_computes_with_whole_arrays(devices):
    assert devices["pure: jit"]["result"] == np.cumsum(X).tolist()
    assert devices["pure: eager"]["result"] == np.cumsum(X).tolist()
    assert devices["pure: jit of vmap"]["result"] == (X + 1).tolist()


@pytest.mark.parametrize("program", ["shard_map", "pmap"])
def test_each_shard_makes_a_call_with_its_part(devices, program):
    found = devices[f"pure: {program}"]
    expected = np.cumsum(X.reshape(4, 2), axis=1)
    np.testing.assert_array_equal(np.reshape(found["result"], (4, 2)), expected)
    assert (found["calls"], found["crossings"]) == (4, 4)


def test_each_shard_calls_for_its_batch_elements(devices):
    found = devices["pure: shard_map of vmap"]
    assert found["result"] == (X + 1).tolist()
    assert (found["calls"], found["crossings"]) == (8, 4)


def test_side_effect_in_a_program_over_several_devices_is_refused(devices):
    found = devices["io: jit"]
    assert "cannot call the compiled" in found["error"]
    assert "Call it in jax.shard_map, once for each shard" in found["error"]
    assert found["error"].endswith("or register it with sharding=, the device that makes the call.")
    assert (found["calls"], found["seen"]) == (0, [])


def test_one_device_makes_the_call_if_sharding_says_so(devices):
    found = devices["io: from one device"]
    assert found["result"] == (2 * X).tolist()
    assert (found["calls"], found["seen"]) == (1, [0])


@pytest.mark.parametrize("program", ["shard_map", "pmap"])
def test_side_effect_happens_once_for_each_shard(devices, program):
    found = devices[f"io: {program}"]
    np.testing.assert_array_equal(np.ravel(found["result"]), 2 * X)
    assert (found["calls"], found["seen"]) == (4, [0, 2, 4, 6])


def test_what_machine_code_uses_stays_when_python_ends():
    used = object()
    before = sys.getrefcount(used)
    forever(used)
    assert sys.getrefcount(used) == before + 1


def test_handler_is_compiled_without_a_cache_if_there_is_no_folder_for_it():
    def decorator(*signature, cache=False):
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: (function.__name__, signature)

    assert _handler._cached(decorator, "signature")(len) == ("len", ("signature",))
