"""With ``arrays="jax"``, host functions get JAX arrays on the local CPU, as JAX's callbacks do."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, THREE, TWO, X, assert_readable, eager_or_jit

# The host functions use JAX on purpose; tests/stack tests the warning about it.
pytestmark = pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")

SILENT = {
    "debug drop-in": lambda host, _: lambda *a: jaxcb.debug_callback(host, *a, arrays="jax"),
    "debug two-call": lambda host, _: lambda *a: jaxcb.debug_callback(arrays="jax")(host, *a),
    "debug decorator": lambda host, _: jaxcb.debug(host, arrays="jax"),
    "debug jax": lambda host, _: lambda *a: jax.debug.callback(host, *a),
}
RETURNING = {
    "pure drop-in": lambda host, like: (
        lambda *a: jaxcb.pure_callback(host, like, *a, arrays="jax", vmap_method="sequential")
    ),
    "pure decorator": lambda host, like: jaxcb.pure(host, result=like, arrays="jax"),
    "pure jax": lambda host, like: (
        lambda *a: jax.pure_callback(host, like, *a, vmap_method="sequential")
    ),
    "io drop-in": lambda host, like: lambda *a: jaxcb.io_callback(host, like, *a, arrays="jax"),
    "io decorator": lambda host, like: jaxcb.io(host, result=like, arrays="jax"),
    "io jax": lambda host, like: lambda *a: io_callback(host, like, *a),
}
MAKERS = RETURNING | SILENT
OURS = {name: maker for name, maker in MAKERS.items() if not name.endswith("jax")}
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
our_makers = pytest.mark.parametrize("maker", OURS.values(), ids=OURS)
OUR_RETURNING = {name: maker for name, maker in OURS.items() if name in RETURNING}
our_returning = pytest.mark.parametrize("maker", OUR_RETURNING.values(), ids=OUR_RETURNING)


@makers
@eager_or_jit
def test_host_function_gets_committed_arrays_of_the_first_cpu_device(maker, run, compiled):
    seen = []

    def host(x, tree):
        for array in (x, *tree):
            assert isinstance(array, jax.Array)
            seen.append((array.committed, array.devices(), array.shape, array.dtype.name))
        return x + 1

    f = maker(host, THREE)
    run(compiled(lambda x: f(x, (x[0], x))), X)
    cpu = {jax.local_devices(backend="cpu")[0]}
    assert seen == [(True, cpu, shape, "float32") for shape in ((3,), (), (3,))]


@pytest.mark.parametrize("maker", RETURNING.values(), ids=RETURNING)
@eager_or_jit
def test_host_function_may_use_jax_and_return_jax_arrays(maker, run, compiled):
    f = maker(lambda x: jnp.cumsum(x * jnp.ones(3)), THREE)
    np.testing.assert_array_equal(run(compiled(f), X), np.cumsum(X))


@pytest.mark.parametrize("maker", RETURNING.values(), ids=RETURNING)
def test_batch_elements_are_jax_arrays_too(maker, run):
    seen = []

    def host(x):
        seen.append((isinstance(x, jax.Array), x.shape, float(x)))
        return x * 2

    np.testing.assert_array_equal(run(jax.jit(jax.vmap(maker(host, SCALAR))), X), 2 * X)
    assert seen == [(True, (), 1.0), (True, (), 2.0), (True, (), 3.0)]


@our_makers
def test_64_bit_values_keep_their_width_on_threads_without_x64(maker):
    """One thread compiles the program with x64 enabled; another thread runs it."""
    seen = []
    big = 2**40 + 7

    def host(x):
        seen.append((x.dtype.name, int(x), (x + 1).dtype.name))
        return x + 1

    with jax.enable_x64(True):
        f = maker(host, jax.ShapeDtypeStruct((), np.int64))
        arguments = [jnp.asarray(big + i) for i in range(10)]
        program = jax.jit(lambda x: (x, f(x))).lower(arguments[0]).compile()
    results = []

    def work():
        results.extend(program(x)[1] for x in arguments)
        jax.effects_barrier()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert sorted(seen) == [("int64", big + i, "int64") for i in range(10)]
    exact = [np.asarray(x).item() for x in results if x is not None]
    assert exact in ([], [big + i + 1 for i in range(10)])


DEVICES = """
import json
import jax, jax.numpy as jnp, numpy as np
import jupyter_jaxcb as jaxcb
from jax.experimental import io_callback
from tests.conformance.arguments.test_jax_arrays import MAKERS
first, second = jax.devices("cpu")
found = {}
for name, maker in MAKERS.items():
    seen = []
    def host(x):
        default = jnp.ones(()).devices()
        seen.append([d.id for d in (*x.devices(), *default)])
        return x + 1
    f = maker(host, jax.ShapeDtypeStruct((), np.float32))
    with jax.default_device(second):
        for g in (f, jax.jit(f)):
            jax.block_until_ready(g(jnp.float32(1)))
            jax.effects_barrier()
        assert jnp.ones(()).devices() == {second}
    found[name] = seen
print(json.dumps(found))
"""


@pytest.mark.long
def test_default_device_in_a_host_function_is_the_first_cpu_device(in_process):
    """The program runs with the second of two devices as the default device."""
    found = in_process(DEVICES, devices=2).value
    assert found == {name: [[0, 0], [0, 0]] for name in MAKERS}


@our_returning
@eager_or_jit
@pytest.mark.parametrize(
    ("returned_value", "words"),
    [
        (lambda x: jnp.ones(4), ["(4,)", "(3,)"]),
        (lambda x: x.astype(complex), ["complex", "float32"]),
        (lambda x: (x, x), ["Array"]),
        (lambda x: None, ["None"]),
    ],
    ids=["shape", "dtype", "structure", "None"],
)
def test_wrong_result_is_a_readable_error(maker, failure, compiled, returned_value, words):
    def oracle(x):
        return returned_value(x)

    message = assert_readable(failure(compiled(maker(oracle, THREE)), X))
    assert [word for word in words if word not in message] == []


@our_makers
@eager_or_jit
def test_exception_of_the_host_function_can_be_retrieved(maker, failure, compiled):
    def host(x):
        raise ValueError(f"at {jnp.sum(x)}")

    assert str(failure(compiled(maker(host, THREE)), X)) == "at 6.0"


@pytest.mark.parametrize(
    "call",
    [
        lambda: jaxcb.pure_callback(np.sin, SCALAR, TWO, arrays="torch"),
        lambda: jaxcb.io_callback(np.sin, SCALAR, TWO, arrays=None),
        lambda: jaxcb.debug_callback(np.sin, TWO, arrays="Numpy"),
        lambda: jaxcb.debug_callback(arrays=3),
        lambda: jaxcb.pure(np.sin, result=SCALAR, arrays="torch"),
        lambda: jaxcb.io(np.sin, result=SCALAR, arrays=True),
        lambda: jaxcb.debug(np.sin, arrays=X.tolist()[0]),
    ],
    ids=["pure", "io", "debug", "two-call", "pure decorator", "io decorator", "debug decorator"],
)
def test_unknown_value_of_arrays_is_an_error_when_called(call):
    with pytest.raises(ValueError, match="'numpy' or arrays='jax'"):
        call()


@eager_or_jit
@pytest.mark.parametrize("name", OURS)
def test_host_function_does_not_see_the_mesh_of_its_caller_as_since_jax_0_12(name, compiled):
    """JAX 0.10 hides the mesh from debug callbacks only."""

    def run(maker):
        def host(x):
            meshes.append(jax.sharding.get_abstract_mesh().empty)
            return x

        meshes = []
        with jax.set_mesh(jax.make_mesh((1,), ("d",))):
            jax.block_until_ready(compiled(maker(host, SCALAR))(TWO))
            jax.effects_barrier()
        return meshes

    assert run(OURS[name]) == [True]
    flavor = name.partition(" ")[0]
    assert run(MAKERS[f"{flavor} jax"]) == [True] or jax.__version_info__ < (0, 12)
