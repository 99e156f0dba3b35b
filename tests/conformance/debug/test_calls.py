"""A debug callback gets the values of every run and does not change the program's results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conformance._parameters import FIVE_FROM_1, TWO, eager_or_jit, ordered_or_not
from tests.conformance.io.test_order import Overtaking


@eager_or_jit
@ordered_or_not
def test_callback_gets_the_value_of_every_run(debug, run, note, ordered, compiled):
    host, seen = note()
    f = debug(host, ordered=ordered)

    @compiled
    def program(x):
        f(x * x)
        return x + 1

    for number in (1, 2, 3):
        assert run(program, np.float32(number)) == number + 1
    assert seen == [1, 4, 9]


@ordered_or_not
def test_callback_without_operands_is_called_once_per_run(debug, run, ordered):
    seen = []
    f = debug(lambda: seen.append(None), ordered=ordered)
    program = jax.jit(lambda x: (f(), x)[1])
    run(program, 1)
    run(program, 1)
    assert len(seen) == 2


@pytest.mark.parametrize(
    "result", [None, 3, "text", np.ones(3)], ids=["None", "3", "text", "array"]
)
def test_result_of_the_host_function_is_ignored(debug, run, result):
    seen = []

    def host(x):
        seen.append(x)
        return result

    f = debug(host)
    assert f(TWO) is None
    run(jax.jit(lambda x: f(x)), TWO)
    assert len(seen) == 2


def test_ordered_callbacks_run_in_program_order(debug):
    """`second` never starts before `first` has finished, within a program and across programs."""
    race = Overtaking()
    f, g = debug(race.first, ordered=True), debug(race.second, ordered=True)

    def program(x):
        f(jnp.linalg.norm(jnp.outer(x, x)) * 0)  # ready after g's operand
        g(1.0)

    jax.jit(program)(FIVE_FROM_1)
    jax.jit(program)(FIVE_FROM_1)
    jax.jit(lambda x: f(x))(2.0)
    jax.jit(lambda x: g(x))(3.0)
    jax.effects_barrier()
    assert race.seen == [
        *2 * [("first", 0, False), ("second", 1, False)],
        ("first", 2, False),
        ("second", 3, False),
    ]


def test_mutable_reference_is_read_at_the_callback(debug, run):
    seen = []
    f = debug(lambda x: seen.append(np.asarray(x).tolist()))

    def program(x):
        ref = jax.new_ref(x)
        f(ref)
        ref[...] = ref[...] + 1
        return ref[...]

    assert run(jax.jit(program), jnp.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [[1.0, 1.0]]
