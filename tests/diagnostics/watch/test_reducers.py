"""Programs that scatter or reduce with a function of two numbers, which must have no effects."""

import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

PROGRAMS = {
    "add": lambda x: x.at[2].add(0.5),
    "multiply": lambda x: x.at[2].mul(0.5),
    "maximum": lambda x: x.at[2].max(0.5),
    "apply": lambda x: x.at[1].apply(lambda v: v * 2),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1]), 2),
    "reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + 0.0, (0,)),
    "reduce two": lambda x: lax.reduce(
        (x, x), (0.0, 0.0), lambda a, b: (a[0] + b[0] * 1.0, a[1] * b[1]), (0,)
    ),
    "window": lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 1.0, (2,), (1,), "VALID"),
    "gradient": lambda x: jax.grad(lambda x: x.at[1].mul(x[0]).sum())(x),
}


def in_loop(f):
    return lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1]


@pytest.mark.parametrize("first", [None, "nan"])
@pytest.mark.parametrize("around", [lambda f: f, jax.jit, in_loop], ids=["eager", "jit", "scan"])
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_results_are_those_of_the_unwatched_program(f, around, first):
    x = jnp.arange(4.0)
    expected = around(f)(x)
    with jaxcb.watching(first=first):
        result = around(f)(x)
    jax.tree.map(np.testing.assert_array_equal, result, expected)


def test_nan_of_a_scattered_product_is_at_its_line():
    def f(x):
        return x.at[1].mul(jnp.inf)

    with jaxcb.watching() as seen:
        jax.jit(f)(jnp.zeros(3))
    assert "`x.at[1].mul(jnp.inf)` gave NaN" in str(seen.first_bad)


def _no_number(x):
    return "s"


def _fails(x):
    raise LookupError("no norm")


class NoArray:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("no array")

    def __jax_array__(self):
        raise RuntimeError("no array")


class NoText:
    def __repr__(self):
        raise RuntimeError("no text")


WRONG = {
    "text": (lambda x: "s", r"norm=<lambda> must return one real number .* not 's'\. Reduce"),
    "named": (_no_number, "norm=_no_number must return"),
    "array": (lambda x: x, r"not float32\[3\]\. Reduce"),
    "complex": (lambda x: 1j * jnp.sum(x), r"not complex64\[\]"),
    "None": (lambda x: None, "not None"),
    "no array": (
        lambda x: NoArray(),
        r"norm=<lambda> must return one real number .* not <.*\.\.\..*>\. Reduce",
    ),
    "large integer": (
        lambda x: 10**400,
        r"norm=<lambda> must return .* not 1000000\d*\.\.\.0*\. Red",
    ),
    "very large integer": (lambda x: 10**9000, "norm=<lambda> must return .* not int that cannot"),
    "integer of 64 bits": (lambda x: 2**63, "norm=<lambda> must return .* not 9223372036854775808"),
    "broken text": (lambda x: NoText(), "norm=<lambda> must return .* not <NoText"),
    "key": (lambda x: jax.random.key(0), r"norm=<lambda> must return .* not key<fry>\[\]"),
}


@pytest.mark.kept
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("case", WRONG)
def test_a_reduction_without_a_number_is_named_with_its_option(case, transform):
    reduce, words = WRONG[case]
    with pytest.raises(ValueError, match=words), jaxcb.watching(norm=reduce):
        transform(_twice)(jnp.ones(3))


@pytest.mark.kept
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_a_reduction_raises_says_which_it_was(transform):
    with pytest.raises(LookupError) as caught, jaxcb.watching(norm=_fails):
        transform(_twice)(jnp.ones(3))
    assert "raised by norm=_fails of watching(), for an array of shape (3,)" in str(
        caught.value.__notes__
    )


def _twice(x):
    y = 2 * x
    return y


@pytest.mark.kept
def test_a_block_whose_trace_function_was_replaced_says_why_it_saw_nothing():
    before = sys.gettrace()
    with jaxcb.watching() as seen:
        sys.settrace(None)
        _twice(jnp.ones(3))
    sys.settrace(before)
    assert str(seen).startswith("no variable got an array of JAX: sys.settrace was called")
    assert "no value was NaN" not in str(seen)


@pytest.mark.kept
def test_a_block_inside_a_traced_function_says_why_it_saw_nothing():
    blocks = []

    @jax.jit
    def program(x):
        with jaxcb.watching() as seen:
            y = _twice(x)
        blocks.append(seen)
        return y

    program(jnp.ones(3))
    assert str(blocks[0]).startswith("no variable got an array of JAX: JAX was tracing a function")
    assert "no value was NaN" not in str(blocks[0])


@pytest.mark.kept
@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.jit, jax.grad], ids=["eager", "jit", "grad"]
)
def test_a_block_whose_arrays_are_made_in_another_thread_says_why_it_saw_nothing(transform):
    def work():
        jax.block_until_ready(transform(lambda x: jnp.sum(_twice(x)))(jnp.ones(3)))

    with jaxcb.watching() as seen:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert str(seen) == (
        "no variable got an array of JAX: arrays were made in another thread than that of the "
        "block. Put the block into the function that this thread runs."
    )


@pytest.mark.kept
def test_an_empty_block_gives_no_reason():
    with jaxcb.watching() as seen:
        pass
    assert str(seen).splitlines()[0] == "no variable got an array of JAX"
