"""A compiled function that fails raises what the Python function raises, with the user's line."""

import gc
import inspect
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.results import ResultError
from tests._threads import in_threads

SCALAR = jax.ShapeDtypeStruct((), np.float32)
TRANSFORMS = {"eager": lambda f: f, "jit": jax.jit}
eager_and_jit = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


def compiled(function, result=SCALAR, flavor=jaxcb.pure, **options):
    return flavor(function, result=result, compile="numba", **options)


def limited(x):
    if x > 2:
        raise ValueError("too large", 7)
    return x


RAISING_LINE = inspect.getsourcelines(limited)[1] + 2


@eager_and_jit
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_exception_has_its_class_its_arguments_and_the_line_that_raised_it(
    failure, flavor, transform
):
    error, notes = failure(transform(compiled(limited, flavor=flavor)), 3.0)
    assert (type(error), error.args) == (ValueError, ("too large", 7))
    assert f"raised by the {flavor.__name__} callback limited, bound at" in notes
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    assert (__file__, RAISING_LINE) in places


@eager_and_jit
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_failure_names_its_batch_element(failure, flavor, transform):
    program = transform(jax.vmap(compiled(limited, flavor=flavor)))
    error, notes = failure(program, np.float32([0, 1, 2, 5, 1]))
    assert error.args == ("too large", 7)
    assert "in batch element 3, called with float32[]" in notes


@pytest.mark.long
def test_failure_in_nested_vmaps_names_its_batch_element(failure):
    """The Python function runs again with the arguments of that element alone."""

    def outside(x, low, high):
        if x < low or x > high:
            raise ValueError(f"{x} is outside")
        return x

    xs = np.zeros((2, 3, 4), np.float32)
    xs[1, 0, 2] = 9
    inner = jax.vmap(compiled(outside), in_axes=(0, None, 0))
    middle = jax.vmap(inner, in_axes=(0, 0, None))
    program = jax.jit(jax.vmap(middle, in_axes=(0, None, None)))
    error, notes = failure(program, xs, -np.ones(3, np.float32), np.ones(4, np.float32))
    assert str(error) == "9.0 is outside"
    assert f"in batch element {np.ravel_multi_index((1, 0, 2), xs.shape)}," in notes


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_integer_division_by_zero_is_an_error_as_in_python(failure, flavor):
    """NumPy's integers only warn."""

    def shared(x):
        return 12 // x

    program = jax.jit(jax.vmap(compiled(shared, "x", flavor)))
    np.testing.assert_array_equal(program(np.int32([1, -5])), [12, -3])
    error, notes = failure(program, np.int32([1, 2, 0]))
    assert type(error) is ZeroDivisionError
    assert "in batch element 2" in notes
    assert ("the same call in Python does not" in notes) is (flavor is jaxcb.pure)


@pytest.mark.long
@eager_and_jit
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize("place", [3, -4])
def test_index_out_of_range_is_an_error(failure, flavor, place, transform):
    def chosen(x, i):
        return x[i]

    program = transform(compiled(chosen, "i", flavor))
    error, notes = failure(program, np.int32([5, 6, 7]), place)
    assert type(error) is IndexError
    assert f"called with int32[3] = [5, 6, 7], int32[] = {place}" in notes


@eager_and_jit
def test_result_of_another_shape_is_the_error_that_it_is_in_python(failure, transform):
    def shortened(x):
        return x[: x[0]]

    x = np.int32([2, 0, 0])
    error, _ = failure(transform(compiled(shortened, "x")), x)
    expected, _ = failure(transform(jaxcb.pure(shortened, result="x")), x)
    assert type(error) is type(expected) is ResultError
    assert str(error) == str(expected)
    assert "shortened returned shape (2,), expected (3,)" in str(error)
    np.testing.assert_array_equal(
        transform(compiled(shortened, "x"))(np.int32([3, 1, 1])), [3, 1, 1]
    )


def test_integer_that_does_not_fit_is_the_error_of_the_compiled_code_not_of_numpy(failure):
    error, notes = failure(jax.jit(compiled(lambda x: x * 1000, "x")), np.int8(100))
    assert type(error) is ResultError
    assert "an integer that does not fit the declared dtype" in str(error)
    assert "the same call in Python raises OverflowError" in notes


def test_result_of_another_shape_from_an_io_callback_is_an_error(failure):
    error, _ = failure(jax.jit(compiled(lambda x: x[:1], "x", jaxcb.io)), np.ones(3))
    assert type(error) is ResultError
    assert "an array of another shape than declared" in str(error)


def test_failed_io_callback_is_not_called_again(failure, note):
    append, got = note

    def send(x):
        append(x)
        if x > 2:
            raise ValueError("no")
        return x

    error, _ = failure(jax.jit(jax.vmap(compiled(send, flavor=jaxcb.io))), np.float32([1, 3, 2]))
    assert error.args == ("no",)
    assert got == [1, 3]


def test_failed_pure_callback_is_called_again_for_its_traceback(failure, note):
    append, got = note

    def send(x):
        if append(x) > 2:
            raise ValueError("no")
        return x

    failure(jax.jit(jax.vmap(compiled(send))), np.float32([1, 3, 2]))
    assert got == [1, 3, 3]


def test_failed_buffer_callback_with_a_side_effect_is_not_called_again(failure, note):
    append, got = note

    def send(out, x):
        append(x)
        raise ValueError("no")

    for has_side_effect, calls in ((True, [1]), (False, [1, 1])):
        callback = compiled(send, flavor=jaxcb.buffer, has_side_effect=has_side_effect)
        error, _ = failure(jax.jit(callback), 1.0)
        assert error.args == ("no",)
        assert got == calls
        got.clear()


def test_program_works_again_after_a_failure(failure):
    program = jax.jit(compiled(limited))
    for _ in range(3):
        assert failure(program, 3.0)[0].args == ("too large", 7)
        assert float(program(1.0)) == 1


def test_failure_in_a_loop_stops_the_loop(failure, note):
    append, got = note

    def step(x):
        append(x)
        if x > 2:
            raise ValueError("no")
        return x + 1

    callback = compiled(step, flavor=jaxcb.io)
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda _, x: callback(x), x))
    error, notes = failure(program, 0.0)
    assert error.args == ("no",)
    assert got == [0, 1, 2, 3]
    assert "in call 4 since registration" in notes


def test_calls_of_programs_that_are_gone_count(failure):
    def small(x):  # of this test alone: the same function registered again goes on counting
        if x > 2:
            raise ValueError
        return x

    callback = compiled(small, flavor=jaxcb.io)
    jax.jit(jax.vmap(lambda x: callback(x)))(np.ones(5)).block_until_ready()
    jax.clear_caches()
    gc.collect()
    assert "in call 6 since registration" in failure(jax.jit(callback), 3.0)[1]


def test_failure_is_recorded_with_its_element_and_the_calls_before_it(failure):
    program = jax.jit(jax.vmap(compiled(limited)))
    with jaxcb.record() as r:
        failure(program, np.float32([0, 1, 5, 1]))
    assert [call.element for call in r.recording] == [0, 1, 2]
    assert [call.error for call in r.recording] == [None, None, "ValueError: ('too large', 7)"]
    assert {call.crossing for call in r.recording} == {0}


def test_exception_without_a_batch_is_recorded(failure):
    program = jax.jit(compiled(limited, flavor=jaxcb.io))
    with jaxcb.record() as r:
        program(1.0).block_until_ready()
        failure(program, 3.0)
        program(2.0).block_until_ready()
    assert sorted((call.error is None, call.element) for call in r.recording) == [
        (False, -1), (True, -1), (True, -1),
    ]  # fmt: skip


@pytest.mark.long
def test_exceptions_of_several_threads_do_not_mix(failure):
    def refuse(x):
        if x >= 0:
            raise ValueError(x)
        return x

    program = jax.jit(compiled(refuse, flavor=jaxcb.io))

    def run(number):
        return [failure(program, float(number))[0].args for _ in range(200)]

    assert in_threads(run, range(4)) == [[(float(n),)] * 200 for n in range(4)]


@pytest.mark.long
def test_exception_in_objmode_reaches_the_caller_from_every_thread(in_process):
    """numba ends the state of Python that a thread of XLA has, and with it the exception."""
    done = in_process(Path(__file__).with_name("objmode.py"), devices=4)
    assert done.stderr == ""
    assert done.value == {
        "pure, caller": ["KeyError('missing')", False],
        "io, caller": ["KeyError('missing')", False],
        "Ctrl-C": ["KeyboardInterrupt()", False],
        "pure, shard_map": ["KeyError('missing')", True],
        "io, shard_map": ["KeyError('missing')", True],
    }


def test_failing_branch_that_is_not_taken_raises_nothing():
    callback = compiled(limited)
    program = jax.jit(lambda x: jax.lax.cond(x > 2, lambda x: x, callback, x))
    np.testing.assert_array_equal([program(jnp.float32(x)) for x in (1, 9)], [1, 9])
