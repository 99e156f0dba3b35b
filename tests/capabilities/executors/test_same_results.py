"""An executor returns the same results as the loop over batch elements, bit for bit."""

import concurrent.futures
import dataclasses
import functools
import multiprocessing
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

DTYPES = ["float32", "int32", "uint8", "bool", "complex64", "float16", "bfloat16"]


@st.composite
def programs(draw):
    """Draw nested vmaps over two operands, and arrays for them."""
    depth = draw(st.integers(0, 3))
    sizes = [draw(st.integers(1, 4)) for _ in range(depth)]  # outermost first
    in_axes = [draw(st.sampled_from([(0, 0), (0, None), (None, 0)])) for _ in sizes]
    dtype = jnp.dtype(draw(st.sampled_from(DTYPES)))
    inner = draw(st.sampled_from([(), (3,), (2, 0), (2, 2)]))
    seed = draw(st.integers(0, 99))
    arrays = []
    for operand in range(2):
        own = [n for n, axes in zip(sizes, in_axes, strict=True) if axes[operand] == 0]
        numbers = np.random.default_rng(seed + operand).integers(0, 2, (*own, *inner))
        arrays.append(jnp.asarray(numbers.astype(dtype)))
    options = {"chunksize": draw(st.sampled_from([None, 1, 3]))}
    if draw(st.booleans()):
        options["timeout"] = 60.0
    return in_axes, arrays, draw(st.sampled_from(["array", "tuple", "dict"])), options


def program(in_axes, arrays, kind, **options):
    def host(x, y):
        both = x ^ y if x.dtype == bool else x + y
        swapped = np.stack([x, y])
        return {"array": both, "tuple": (both, swapped), "dict": {"b": swapped, "a": both}}[kind]

    def call(x, y):
        both = jax.ShapeDtypeStruct(x.shape, x.dtype)
        swapped = jax.ShapeDtypeStruct((2, *x.shape), x.dtype)
        result = {"array": both, "tuple": (both, swapped), "dict": {"b": swapped, "a": both}}[kind]
        return jaxcb.pure_callback(host, result, x, y, vmap_method="sequential", **options)

    for axes in reversed(in_axes):
        call = jax.vmap(call, in_axes=axes)
    return jax.tree.map(np.asarray, jax.jit(call)(*arrays))


def same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@settings(max_examples=60)
@given(programs())
def test_threads_return_the_results_of_the_loop(drawn):
    in_axes, arrays, kind, options = drawn
    expected = program(in_axes, arrays, kind)
    same(program(in_axes, arrays, kind, executor="threads:3", **options), expected)


@settings(max_examples=12)
@given(programs())
def test_processes_return_the_results_of_the_loop(drawn):
    in_axes, arrays, kind, options = drawn
    expected = program(in_axes, arrays, kind)
    same(program(in_axes, arrays, kind, executor="processes:2", **options), expected)


@pytest.mark.parametrize("executor", ["threads:1", "processes:2"])
def test_buffer_that_a_host_function_reuses_is_copied_for_each_element(executor):
    kept = np.zeros(2, np.float32)

    def host(x):
        kept[:] = x
        return {"one": kept, "two": (kept,)}

    two = jax.ShapeDtypeStruct((2,), np.float32)
    result = {"one": two, "two": (two,)}
    f = jax.vmap(
        lambda x: jaxcb.pure_callback(
            host, result, x, vmap_method="sequential", executor=executor, chunksize=8
        )
    )
    x = np.arange(16, dtype=np.float32)
    returned_value = f(x)
    for array in jax.tree.leaves(returned_value):
        np.testing.assert_array_equal(array, np.stack([x, x], 1))


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_static_arguments_keywords_and_pytrees_are_passed_on(executor):
    def host(tree, power, *, scale):
        assert isinstance(tree["x"], np.ndarray) and not tree["x"].flags.writeable
        return (tree["x"] ** {"square": 2}[power]) * scale

    f = jax.vmap(
        lambda x: jaxcb.pure_callback(
            host,
            jax.ShapeDtypeStruct((), np.float32),
            {"x": x, "unused": None},
            "square",
            scale=np.float32(3),
            vmap_method="sequential",
            executor=executor,
        )
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(f(x), 3 * x**2)


@pytest.mark.parametrize("pool", ["processes:2", "own"])
def test_arguments_of_a_class_that_no_worker_can_import_are_sent(pool):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Pair:
        one: object
        two: object

    def host(pair):
        return pair.one + 10 * pair.two

    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as own:
        executor = own if pool == "own" else pool
        f = jaxcb.pure(host, result=jax.ShapeDtypeStruct((), np.float32), executor=executor)
        x = np.arange(5, dtype=np.float32)
        np.testing.assert_array_equal(jax.jit(jax.vmap(f))(Pair(x, x)), 11 * x)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_arguments_are_read_only_and_unbatched_operands_are_whole(executor):
    def host(x, table):
        assert not x.flags.writeable and not table.flags.writeable
        assert type(x) is type(table) is np.ndarray and x.shape == ()
        return table[int(x)]

    table = np.arange(10, dtype=np.float32) ** 2
    f = jax.vmap(
        lambda i: jaxcb.pure_callback(
            host,
            jax.ShapeDtypeStruct((), np.float32),
            i,
            table,
            vmap_method="sequential",
            executor=executor,
        )
    )
    np.testing.assert_array_equal(f(np.arange(9, -1, -1)), table[::-1])


def test_threads_get_jax_arrays_and_keys():
    def host(key, x):
        assert isinstance(x, jax.Array) and str(key.dtype) == "key<fry>"
        return np.asarray(x) + 1

    keys = jax.random.split(jax.random.key(0), 4)
    x = jnp.arange(4, dtype=np.float32)

    def f(**options):
        call = functools.partial(
            jaxcb.pure_callback, host, x[0], vmap_method="sequential", arrays="jax", **options
        )
        return np.asarray(jax.jit(jax.vmap(call))(keys, x))

    same(f(executor="threads:2"), f())


def test_io_callback_makes_each_call_once(calls):
    count = calls.counter()

    def host(x):
        count(int(x))

    f = jax.jit(jax.vmap(lambda x: jaxcb.io_callback(host, None, x, executor="processes:2")))
    f(np.arange(30))
    jax.effects_barrier()
    assert calls.counted() == {str(n): 1 for n in range(30)}


def test_call_without_vmap_runs_in_the_executor_too():
    def host(x):
        return np.int32(threading.current_thread() is threading.main_thread())

    f = jaxcb.pure(host, result=jax.ShapeDtypeStruct((), np.int32), executor="threads")
    assert f(1.0) == 0 and jax.jit(f)(1.0) == 0
    plain = jaxcb.pure(host, result=jax.ShapeDtypeStruct((), np.int32))
    assert plain(1.0) == 1


def test_batch_of_expand_dims_is_one_call_in_the_executor(calls):
    count = calls.counter()

    def host(x):
        count("calls")
        return 2 * x

    f = jaxcb.pure(host, result="x", vmap_method="expand_dims", executor="processes:2")
    np.testing.assert_array_equal(jax.vmap(f)(np.arange(6.0)), 2 * np.arange(6))
    assert calls.counted() == {"calls": 1}


def test_executor_runs_the_new_body_of_a_rerun_cell(notebook):
    cell = "@jaxcb.pure(result='x', executor='processes:2')\ndef times(x):\n    return {} * x\n"
    notebook.run(cell.format(2), "a cell")
    jitted = jax.jit(jax.vmap(notebook.names["times"]))
    assert jitted(np.arange(4)).tolist() == [0, 2, 4, 6]
    notebook.run(cell.format(3), "a cell")
    assert jitted(np.arange(4)).tolist() == [0, 3, 6, 9]


def test_host_function_uses_the_current_value_of_a_global():
    names = {"__name__": "__main__", "factor": 2}
    exec("def times(x):\n    return factor * x\n", names)
    f = jax.jit(jax.vmap(jaxcb.pure(names["times"], result="x", executor="processes:2")))
    assert f(np.arange(3)).tolist() == [0, 2, 4]
    names["factor"] = 5
    assert f(np.arange(3)).tolist() == [0, 5, 10]


def test_executor_object_of_the_user_is_used(elements):
    class Immediate(concurrent.futures.Executor):
        """Run work immediately."""

        def __init__(self):
            self.given = 0

        def submit(self, work, /, *args):
            self.given += 1
            future = concurrent.futures.Future()
            future.set_result(work(*args))
            return future

    own = Immediate()
    returned_value = elements(lambda x: x + 1, executor=own, chunksize=4)(
        np.arange(10, dtype=np.float32)
    )
    np.testing.assert_array_equal(returned_value, np.arange(1, 11))
    assert own.given == 3


def test_cheap_elements_are_sent_together():
    sent = []

    class Counting(concurrent.futures.ThreadPoolExecutor):
        def submit(self, work, /, *args):
            sent.append(args[1].count)
            return super().submit(work, *args)

    with Counting(2) as pool:
        f = jax.jit(
            jax.vmap(
                lambda x: jaxcb.pure_callback(
                    lambda x: x, x, x, vmap_method="sequential", executor=pool
                )
            )
        )
        for _ in range(3):
            f(np.arange(10_000)).block_until_ready()
    assert sum(sent) == 30_000
    assert len(sent) < 600  # not one by one


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, float, np.int8], ids=lambda k: k.__name__)
def test_numbers_of_another_type_are_converted_to_the_declared_dtype(executor, kind):
    def host(x):
        return kind(3 * x)

    def f(**options):
        number = jax.ShapeDtypeStruct((), np.float32)
        call = functools.partial(
            jaxcb.pure_callback, host, number, vmap_method="sequential", **options
        )
        return np.asarray(jax.vmap(call)(np.arange(6, dtype=np.float32)))

    same(f(executor=executor), f())


@pytest.mark.parametrize("executor", ["threads:1", "processes:1"])
def test_one_buffer_returned_by_every_call_is_copied_each_time(executor):
    pair = jax.ShapeDtypeStruct((2,), np.float32)
    buffer = np.empty(2, np.float32)

    def host(x):
        buffer[:] = x
        return buffer

    f = jaxcb.pure(host, result=pair, executor=executor, chunksize=4)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x), np.stack([x, x], axis=1))


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_one_chunk_may_return_numpy_and_python_numbers(elements, executor):
    f = elements(lambda x: x if x % 3 == 0 else float(x), executor=executor, chunksize=3)
    x = np.arange(12, dtype=np.float32)
    np.testing.assert_array_equal(f(x), x)


def test_arguments_are_read_only_in_a_pool_of_the_user():
    """Pickle protocol 5 preserves the flag: loky uses it, this pool only from Python 3.14 on."""

    def host(x, table):
        assert not x.flags.writeable and not table.flags.writeable
        return table[int(x.sum())]

    table = np.arange(10, dtype=np.float32) ** 2
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        f = jax.vmap(
            lambda x: jaxcb.pure_callback(
                host, jax.ShapeDtypeStruct((), np.float32), x, table,
                vmap_method="sequential", executor=pool,
            )
        )  # fmt: skip
        x = np.arange(8).reshape(4, 2) // 2
        np.testing.assert_array_equal(f(x), table[x.sum(axis=1)])
