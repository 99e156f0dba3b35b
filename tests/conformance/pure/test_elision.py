"""A pure callback is called as often as JAX's, and a recording lists the elided calls."""

import itertools

import jax
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_TO_2, ZERO, like_first, values
from tests.lines import lines


def test_only_the_callback_whose_result_is_used_is_called(pure, spy, run):
    (used, use), (dropped, drop) = spy(np.sin), spy(np.cos)
    f, g = pure(used, like_first), pure(dropped, like_first)

    def program(x):
        g(x)
        return f(x)

    np.testing.assert_allclose(run(jax.jit(program), FIVE_TO_2), np.sin(FIVE_TO_2), rtol=1e-6)
    assert (len(use), len(drop)) == (1, 0)


def test_eager_call_runs_though_its_result_is_dropped(pure, spy, run):
    """Outside jit, JAX cannot know that the result is unused."""
    host, seen = spy(np.sin)
    run(pure(host, like_first), FIVE_TO_2)
    assert len(seen) == 1


@jaxcb.pure(result="x")
def watched(x):
    return np.sin(x)


def drops_the_drop_in(x):
    jaxcb.pure_callback(np.sin, x, x)
    return x + 1


def drops_the_decorated(x):
    watched(x)
    return x + 1


droppers = pytest.mark.parametrize(
    ("program", "name"),
    [(drops_the_drop_in, "sin"), (drops_the_decorated, "watched")],
    ids=["drop-in", "decorator"],
)


@droppers
@pytest.mark.parametrize(
    "transformed",
    [
        jax.jit,
        lambda f: jax.jit(lambda x: 2 * jax.jit(f)(x) - f(x)),
        lambda f: jax.jit(lambda x: lax.scan(lambda c, a: (f(c), None), x, None, 3)[0] - 2),
    ],
    ids=["jit", "jit in jit", "scan"],
)
def test_unused_callback_is_reported_with_its_line_and_advice(program, name, transformed, run):
    f = transformed(lambda x: program(x))  # a new function, so JAX has not compiled it yet
    with jaxcb.record() as r:
        np.testing.assert_allclose(run(f, FIVE_TO_2), FIVE_TO_2 + 1, rtol=1e-6)
    assert len(r.recording) == 0
    assert r.recording.elisions
    for elided in r.recording.elisions:
        assert elided.status == "unused"
        assert (elided.site.flavor, elided.site.function) == ("pure", name)
        assert elided.site.file == __file__
        assert elided.site.line == program.__code__.co_firstlineno + 1
        assert elided.site.source == program_source(elided.site.line)
    for line in lines(r.recording):
        assert line.reason and "io" in line.advice


def program_source(line):
    with open(__file__) as file:
        return next(itertools.islice(file, line - 1, None)).strip()


def two_equal_calls(f, x):
    return f(x) + f(x)


def two_equal_calls_of_a_jitted_function(f, x):
    g = jax.jit(f)
    return g(x) + g(x)


def invariant_in_scan(f, x):
    return lax.scan(lambda c, _: (c + f(x), None), x, None, 4)[0]


def constant_in_scan(f, x):
    return lax.scan(lambda c, _: (c + f(ZERO), None), x, None, 4)[0]


def invariant_in_grad_of_scan(f, x):
    def loss(w):
        return lax.scan(lambda c, _: (c * w + f(x), None), ZERO, None, 4)[0]

    return jax.grad(loss)(np.float32(2))


def in_scan_of_length_one(f, x):
    return lax.scan(lambda c, _: (c + f(c), None), x, None, 1)[0]


def in_scan_of_length_zero(f, x):
    return lax.scan(lambda c, _: (c + f(c), None), x, None, 0)[0]


def only_the_size_is_used(f, x):
    return x * f(x).size


@pytest.mark.parametrize(
    "program",
    [
        two_equal_calls,
        two_equal_calls_of_a_jitted_function,
        invariant_in_scan,
        constant_in_scan,
        invariant_in_grad_of_scan,
        in_scan_of_length_one,
        in_scan_of_length_zero,
        only_the_size_is_used,
    ],
    ids=lambda program: program.__name__,
)
def test_number_of_calls_is_the_same_as_with_jax(our_pure, jax_pure, spy, run, program):
    """The programs contain equal, loop-invariant and unused calls, which compilers may remove."""
    (host, seen), (jax_host, jax_seen) = spy(np.sin), spy(np.sin)
    f, g = our_pure(host, like_first), jax_pure(jax_host, like_first)
    x = np.float32(0.5)
    returned_value = run(jax.jit(lambda x: program(f, x)), x)
    expected = run(jax.jit(lambda x: program(g, x)), x)
    np.testing.assert_array_equal(returned_value, expected)
    assert values(seen) == values(jax_seen)
