"""Callbacks that each violate one rule of their contract."""

import functools
import itertools
from importlib import import_module

import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

X = np.float32([1.0, 2.0, 4.0])


def pure(result="x", **options):
    return jaxcb.pure(result=result, **options)


def random_result():
    generators = [np.random.default_rng(0)]
    return pure()(lambda x: x + next(iter(generators)).normal(size=3)), X


def counter():
    count = functools.partial(next, itertools.count())  # not seen in the source
    return pure()(lambda x: x + count()), X


def remembers_the_previous_call():
    last = [np.zeros(3)]

    @pure()
    def smooth(x):
        before, last[0] = last[0], x
        return x if np.array_equal(before, x) or not before.any() else x + before

    return smooth, X


def writes_its_input():
    @pure()
    def shift(x):
        view = np.asarray(x)
        np.subtract(view, 1, view)
        return view

    return shift, X


def writes_to_writable_inputs():
    @pure()
    def careful(x):
        if x.flags.writeable:
            np.copyto(x, 7)
        return x * 0

    return careful, X


def wrong_shape():
    return pure()(lambda x: x[:2]), X


def wrong_structure():
    return pure("{'a': x, 'b': x}")(lambda x: {"a": x, "c": x}), X


def loses_its_fraction():
    return pure(np.int32([0, 0, 0]))(lambda x: x / 3), X


def raises():
    return pure()(lambda x: {}["missing"]), X


def not_batch_aware():
    return pure(vmap_method="expand_dims")(lambda x: x / x.max()), X


def takes_no_batch():
    return pure(vmap_method="broadcast_all")(lambda x: np.float32(float(x))), np.float32(2)


def sums_the_batch_away():
    return pure(result=X[0], vmap_method="legacy_vectorized")(lambda x: x.sum()), X


def correct_for_one_batch_axis_only():
    @pure(result=X, vmap_method="legacy_vectorized")
    def outer(x, y):
        return x * y[:, None] if y.ndim else x * y

    return outer, X, np.float32(2)


def off_by_a_percent_in_a_batch():
    return pure(vmap_method="expand_dims")(lambda x: x * (1.01 if x.ndim > 1 else 1)), X


def wrong_jvp():
    sin = pure()(lambda x: np.sin(x))
    sin.defjvp(lambda primals, tangents: (sin(*primals), jnp.sin(*primals) * tangents[0]))
    return sin, X


def wrong_vjp():
    times = pure(result=X)(lambda x, y: x * y)
    times.defvjp(lambda x, y: (times(x, y), (x, y)), lambda kept, g: (g * kept[1], g * kept[1]))
    return times, X, X[::-1].copy()


def rule_that_fails():
    sin = pure()(lambda x: np.sin(x))
    sin.defjvp(lambda primals, tangents: (sin(*primals), tangents[0][:2]))
    return sin, X


def uses_jax():
    return pure()(lambda x: np.asarray(jnp.sin(x))), X


def uses_jax_that_it_imports():
    return pure()(lambda x: np.asarray(import_module("jax.numpy").sin(x))), X


def prints_by_another_name():
    return pure()(lambda x: import_module("builtins").print("saw", x.shape) or x), X


def forgets_output():
    @jaxcb.buffer(result="x")
    def most(out, x):
        out[:2] = x[:2]

    return most, X


def adds_to_its_output():
    @jaxcb.buffer(result="x")
    def accumulate(out, x):
        np.add(out, x + 1, out)

    return accumulate, X


def buffer_of_one_element():
    @jaxcb.buffer(result="x", vmap_method="expand_dims")
    def scale(out, x):
        np.divide(x, x.max(), out)

    return scale, X


def reads_the_clock():
    import time

    @pure()
    def late(x):
        time.time()
        return x

    return late, X


PLANTED = {  # function that returns a callback and its arguments: kind of the finding, its text
    random_result: ("same inputs twice", r"returns .* at \[0\] instead of"),
    counter: ("same inputs twice", r"returns 2.0 at \[0\] instead of 1.0"),
    remembers_the_previous_call: ("same inputs twice", "after calls with other arguments"),
    writes_its_input: ("inputs unchanged", "fails on read-only arrays"),
    writes_to_writable_inputs: (
        "inputs unchanged",
        r"input is 7.0 at args\[0\]\[0\] instead of 1.0",
    ),
    wrong_shape: ("declared result", r"returned shape \(2,\), expected \(3,\)"),
    wrong_structure: ("declared result", "'c'"),
    loses_its_fraction: ("declared result", "int32"),
    raises: ("declared result", "KeyError: 'missing'"),
    not_batch_aware: ("vmap contract", r"'expand_dims', .* \(3, 3\).*batch element 1 is 0.1875 at"),
    off_by_a_percent_in_a_batch: (
        "vmap contract",
        r"batch element 0 is 1.01 at \[0\]; called alone it returns 1.0",
    ),
    takes_no_batch: ("vmap contract", "TypeError: only"),
    sums_the_batch_away: ("vmap contract", r"shape \(\), expected \(3,\)"),
    correct_for_one_batch_axis_only: ("vmap contract", r"shapes \(2, 3, 3\), \(2, 3\)"),
    wrong_jvp: ("derivative rule", r"by args\[0\], .*; differences give"),
    wrong_vjp: ("derivative rule", r"by args\[1\], .*; differences give"),
    rule_that_fails: ("derivative rule", r"by args\[0\] it fails"),
    uses_jax: ("no JAX inside", "uses JAX: jax.numpy.sin, _planted.py"),
    uses_jax_that_it_imports: ("no JAX inside", "uses JAX: _planted.py"),
    prints_by_another_name: ("no printing", r"prints 'saw \(3,\)'"),
    forgets_output: ("declared result", r"did not write 1 of the 3 elements of out"),
    adds_to_its_output: ("same inputs twice", "instead of"),
    buffer_of_one_element: ("vmap contract", "'expand_dims'"),
    reads_the_clock: ("source", "reads the clock: time.time"),
}
