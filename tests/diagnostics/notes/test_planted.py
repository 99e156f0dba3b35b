"""A NaN that was planted in a program is found: its line, step, batch element and direction."""

import inspect

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from .planted import PLANTED


def line_of(program):
    """Return the line of the file that has the comment, in the program or what it calls."""
    lines, first = inspect.getsourcelines(program)
    found = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# here")]
    if found:
        return found[0]
    text = inspect.getsource(inspect.getmodule(program)).splitlines()
    return next(n for n, line in enumerate(text, 1) if line.rstrip().endswith("# shared"))


def watched(run, args, first):
    with jaxcb.watching(first=first) as seen:
        return jax.block_until_ready(run(*args)), seen


@pytest.mark.parametrize("first", [None, "nan"], ids=["with-variables", "first-only"])
@pytest.mark.parametrize("name", PLANTED)
def test_planted_nan_is_found_and_results_are_those_of_the_plain_program(name, first):
    program, steps, element, direction, args, is_jitted = PLANTED[name]
    run = jax.jit(program) if is_jitted else program
    plain = run(*args)
    got, seen = watched(run, args, first)
    bad = seen.first_bad
    assert (bad.file, bad.line) == (inspect.getsourcefile(program), line_of(program))
    assert (bad.steps, bad.element, bad.direction) == (steps, element, direction)
    for expected, value in zip(jax.tree.leaves(plain), jax.tree.leaves(got), strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("inf", "gave inf in step 2"),
        ("both", "gave inf in step 2"),
        ("x > 50", "gave a value with x > 50 in step 1"),
        ("jnp.abs(x) > 1e9", "gave a value with jnp.abs(x) > 1e9 in step 2"),
        ("nan", "no value was NaN"),
        ("x < 0", "no value had x < 0"),
    ],
)
def test_first_bad_value_is_the_first_that_meets_the_condition(first, told):
    def step(x, s):
        y = x / s
        return y, None

    scales = np.float32([0.1, 0.01, 0, 1])
    _, seen = watched(lambda s: jax.lax.scan(step, 1.0, s)[0], (scales,), first)
    assert told in str(seen)
    assert (seen.first_bad is None) == told.startswith("no")


def test_stop_ends_a_compiled_program_and_python_code_at_the_first_bad_value():
    calls = []

    def step(x, s):
        y = jnp_log(x - s)
        jax.debug.callback(lambda y: calls.append(float(y)), y, ordered=True)
        return y, None

    jnp_log = jax.numpy.log
    with pytest.raises(FloatingPointError, match="gave NaN in step 1, forward"):
        with jaxcb.watching(first="nan", stop=True):
            jax.block_until_ready(jax.lax.scan(step, 3.0, np.float32([1, 1, 1, 1, 1])))
    assert len(calls) < 5
    done = []
    with pytest.raises(FloatingPointError, match="`y` gave NaN in step 2"):
        with jaxcb.watching(stop=True):
            for x in (1.0, 2.0, -1.0, 3.0):
                y = jnp_log(x)
                done.append(y)
    assert len(done) == 2
