"""A host function may run JAX programs with further callbacks, nested and from several threads."""

from pathlib import Path

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, TWO

# The host functions use JAX on purpose; tests/stack tests the warning about it.
pytestmark = pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")

PROGRAM = Path(__file__).with_name("reentrant.py")


def expected_calls(numbers, rounds):
    """Return the expected counts: two pure, two io and one debug call per number and round."""
    each = [["debug", 2.0 * number + 3, rounds] for number in range(numbers)]
    total = 2 * numbers * rounds
    return sorted([*each, ["io", total], ["pure", total]])


EXPECTED = {
    "eager": expected_calls(3, 1),
    "jit": expected_calls(3, 1),
    "in flight": expected_calls(4, 1),
    "threads": expected_calls(3, 3),
}


@pytest.mark.long
@pytest.mark.parametrize(("callbacks", "cores"), [("numpy,arrays", "one"), ("numpy", "all")])
def test_nested_callbacks_are_called_as_often_as_the_program_says(in_process, callbacks, cores):
    """Small operands never deadlock, even on one core with asynchronous dispatch."""
    found = in_process(PROGRAM, callbacks, 3, cores, "asynchronous").value
    assert found == dict.fromkeys(callbacks.split(","), EXPECTED)


@pytest.mark.long
def test_big_operands_do_not_deadlock_on_one_core_with_synchronous_dispatch(in_process):
    """We advise synchronous dispatch up to JAX 0.10, whose CPU client may deadlock without it.

    JAX's own callbacks may deadlock even so, depending on the alignment of the memory they get:
    see `is_big` of the package.
    """
    found = in_process(PROGRAM, "numpy,arrays", 1000, "one", "synchronous").value
    assert found == {"numpy": EXPECTED, "arrays": EXPECTED}


@pytest.mark.long
@pytest.mark.parametrize("inner_ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize("outer_ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_io_may_call_io_that_calls_debug(io, run, compiled, outer_ordered, inner_ordered):
    seen = []
    show = jaxcb.debug(lambda x: seen.append(("debug", x.item())), ordered=inner_ordered)

    def inner(x):
        jax.jit(show)(np.asarray(x) + 1)
        jax.effects_barrier()
        seen.append(("inner", np.asarray(x).item()))
        return np.asarray(x) * 2

    f = io(inner, SCALAR, ordered=inner_ordered)

    def outer(x):
        y = jax.jit(f)(np.asarray(x) + 1)
        seen.append(("outer", np.asarray(x).item()))
        return np.asarray(y) + 1

    assert run(compiled(io(outer, SCALAR, ordered=outer_ordered)), TWO) == 7
    assert seen == [("debug", 4), ("inner", 3), ("outer", 2)]


def test_recursive_host_function_calls_itself_through_jax(pure, run):
    seen = []

    def factorial(n):
        n = np.asarray(n)
        seen.append(n.item())
        return n if n <= 1 else n * np.asarray(jax.jit(lambda n: f(n))(n - 1))

    f = pure(factorial, SCALAR)
    assert run(jax.jit(f), np.float32(10)) == 3628800
    assert seen == list(range(10, 0, -1))


def test_recursive_host_function_needs_no_jit(our_pure, run):
    """JAX compiles its own eager callbacks and refuses this program as a recursive jit."""
    seen = []

    def count_down(n):
        seen.append(n.item())
        return n if n <= 0 else np.asarray(f(n - 1))

    f = our_pure(count_down, SCALAR)
    assert run(f, np.float32(10)) == 0
    assert seen == list(range(10, -1, -1))


def test_nested_calls_are_recorded_at_every_depth():
    def inner(x):
        return x + 1

    def outer(x):
        return np.asarray(jax.jit(lambda x: jaxcb.pure_callback(inner, x, x))(x)) * 2

    with jaxcb.record() as r:
        result = jax.jit(lambda x: jaxcb.pure_callback(outer, x, x))(TWO)
        assert result == 6
    assert len(r.recording) == 2
    assert len(r.recording.calls_of("inner")) == len(r.recording.calls_of("outer")) == 1


def test_host_function_may_differentiate_and_vmap_programs_with_callbacks(pure, run):
    calls = []

    def host_square(x):
        calls.append(np.asarray(x).item())
        return np.square(np.asarray(x))

    square = jax.custom_jvp(lambda x: pure(host_square, SCALAR, vmap_method="sequential")(x))
    square.defjvp(lambda p, t: (square(*p), 2 * p[0] * t[0]))

    def host(xs):
        return np.asarray(jax.vmap(jax.value_and_grad(square))(np.asarray(xs))[1])

    xs = np.float32([1, 2, 3])
    f = pure(host, jax.ShapeDtypeStruct((3,), np.float32))
    np.testing.assert_array_equal(run(jax.jit(f), xs), 2 * xs)
    assert calls == [1, 2, 3]
