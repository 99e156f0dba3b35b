"""A host function learns which call it is in, however the call is made."""

import dataclasses
import inspect
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

FLAVORS = ("pure", "io", "debug", "buffer")
RECORDED = {"unrecorded": False, "recorded": True}


class Asked:
    """Host functions that keep what `call_info` returns, with the argument of the call."""

    def __init__(self):
        self.calls = []

    def callback(self, flavor, **options):
        def keep(x):
            self.calls.append((jaxcb.call_info(), np.array(x)))
            return x

        def silent(x):
            keep(x)

        def write(out, x):
            out[...] = keep(x)

        if flavor in ("debug", "tap"):
            return getattr(jaxcb, flavor)(silent, **options)
        return getattr(jaxcb, flavor)(write if flavor == "buffer" else keep, result="x", **options)

    def indices(self):
        """The index and the argument of each call."""
        jax.effects_barrier()
        return [(info.index, x.tolist()) for info, x in self.calls]


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture(params=RECORDED)
def listening(request):
    if not RECORDED[request.param]:
        yield
        return
    with jaxcb.record():
        yield


pytestmark = pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
jax_inside = pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("compiled", [False, True])
def test_call_knows_its_site_program_and_number(asked, listening, flavor, compiled):
    callback = asked.callback(flavor)

    def program(x):
        return callback(x)

    line = inspect.getsourcelines(program)[1] + 1
    for _ in range(2):
        jax.block_until_ready((jax.jit(program) if compiled else program)(jnp.float32(3)))
    jax.effects_barrier()
    first, second = (dataclasses.asdict(info) for info, _ in asked.calls)
    assert (first["flavor"], first["file"], first["line"]) == (flavor, __file__, line)
    assert first["program"] == ("jit_program" if compiled else None)
    assert first["callback"] in ("keep", "silent", "write")
    assert [first["call"], second["call"]] == [1, 2]
    assert [info.index for info, _ in asked.calls] == [(), ()]
    assert asked.calls[0][0].elements == ((),)


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_index_is_the_batch_element_under_nested_vmaps(asked, listening, flavor, shape):
    """Arguments are numbers, whose results are collected in another loop, and vectors."""
    numbers = jnp.arange(6.0).reshape(2, 3, *[1] * len(shape)) * jnp.ones(shape)
    program = jax.vmap(jax.vmap(asked.callback(flavor), axis_name="inner"), axis_name="outer")
    jax.block_until_ready(jax.jit(program)(numbers))
    found = asked.indices()
    assert sorted(index for index, _ in found) == [(i, j) for i in range(2) for j in range(3)]
    assert all(np.all(numbers[index] == np.array(x)) for index, x in found)
    assert {(info.batch, info.axis_names) for info, _ in asked.calls} == {
        ((2, 3), ("outer", "inner"))
    }
    assert [info.call for info, _ in asked.calls] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all"])
def test_call_for_a_batch_has_the_index_of_each_element(asked, listening, method):
    callback = asked.callback("pure", vmap_method=method)
    numbers = jnp.arange(6.0).reshape(2, 3)
    jax.block_until_ready(jax.jit(jax.vmap(jax.vmap(callback)))(numbers))
    ((info, x),) = asked.calls
    assert info.index is None
    assert [x[index] for index in info.elements] == [0, 1, 2, 3, 4, 5]


@jax_inside
def test_innermost_call_is_meant_when_a_host_function_calls_another(asked):
    inner = asked.callback("io")

    @jaxcb.io(result="x")
    def outer(x):
        inner(np.float32(7))
        asked.calls.append((jaxcb.call_info(), x))
        return x

    outer(np.float32(1))
    assert [info.callback for info, _ in asked.calls] == ["keep", "outer"]


@pytest.mark.long
def test_shard_and_device_are_those_of_the_call(in_process):
    """Each of four devices calls with its shard, for each of the two rows that it has.

    Whether the vmap is in the shard_map or around it, spread over the devices.
    """
    found = in_process(
        """
        import json
        import jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb
        from jax.sharding import Mesh, PartitionSpec as P

        calls = []

        @jaxcb.io(result="x")
        def keep(x):
            info = jaxcb.call_info()
            calls.append((float(x), info.shard, info.device, info.index))
            return x

        mesh = Mesh(np.array(jax.devices()), "d")
        inside = jax.shard_map(jax.vmap(keep), mesh=mesh, in_specs=P("d"), out_specs=P("d"))
        each = jax.shard_map(keep, mesh=mesh, in_specs=P(), out_specs=P())
        found = []
        for spread in (inside, jax.vmap(each, spmd_axis_name="d")):
            calls.clear()
            jax.block_until_ready(jax.jit(spread)(jnp.arange(8.0)))
            found.append(sorted(calls))
        print(json.dumps(found))
        """,
        devices=4,
    ).value
    assert found == [[[x, x // 2, f"cpu:{x // 2}", [x % 2]] for x in range(8)]] * 2


def test_asking_outside_a_call_says_where_to_ask(asked):
    with pytest.raises(RuntimeError, match=r"outside .* in a host function .*, not of JAX's own"):
        jaxcb.call_info()

    errors = []

    @jaxcb.io(result=None)
    def start(x):
        def ask():
            try:
                jaxcb.call_info()
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    start(np.float32(0))
    assert len(errors) == 1
    assert "on the thread that runs it" in errors[0]
