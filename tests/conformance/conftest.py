"""Fixtures that make callbacks, ours and JAX's, and host functions that record their calls.

A test that takes `pure`, `io` or `debug` runs once with JAX's function and once with each of ours,
so it also verifies that JAX behaves as expected. A test of a deliberate difference takes
`our_pure`, `our_io` or `our_debug`. Where behavior depends on the version of JAX, a test compares
ours with `jax_pure`, `jax_io` or `jax_debug`.
"""

import functools

import jax
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb


def _declared(result, args, kwargs):
    return result(*args, **kwargs) if callable(result) else result


def _pure_of(pure_callback):
    def make(host, result, vmap_method=None):
        def call(*args, **kwargs):
            declared = _declared(result, args, kwargs)
            return pure_callback(host, declared, *args, vmap_method=vmap_method, **kwargs)

        return call

    return make


def _io_of(io_callback):
    def make(host, result, ordered=False):
        def call(*args, **kwargs):
            declared = _declared(result, args, kwargs)
            return io_callback(host, declared, *args, ordered=ordered, **kwargs)

        return call

    return make


def _debug_of(debug_callback):
    def make(host, ordered=False):
        return functools.partial(debug_callback, host, ordered=ordered)

    return make


def _debug_in_two_calls(host, ordered=False):
    return functools.partial(jaxcb.debug_callback(ordered=ordered), host)


def _pure_decorator(host, result, vmap_method=None):
    return jaxcb.pure(result=result, vmap_method=vmap_method)(host)


def _io_decorator(host, result, ordered=False):
    return jaxcb.io(result=result, ordered=ordered)(host)


def _debug_decorator(host, ordered=False):
    return jaxcb.debug(ordered=ordered)(host)


PURE = {
    "jax": _pure_of(jax.pure_callback),
    "drop-in": _pure_of(jaxcb.pure_callback),
    "decorator": _pure_decorator,
}
IO = {"jax": _io_of(io_callback), "drop-in": _io_of(jaxcb.io_callback), "decorator": _io_decorator}
DEBUG = {
    "jax": _debug_of(jax.debug.callback),
    "drop-in": _debug_of(jaxcb.debug_callback),
    "two-call": _debug_in_two_calls,
    "decorator": _debug_decorator,
}


def _fixture_of(table, *, ours):
    makers = {name: maker for name, maker in table.items() if not (ours and name == "jax")}

    @pytest.fixture(params=makers.values(), ids=makers)
    def maker(request):
        return request.param

    return maker


pure = _fixture_of(PURE, ours=False)
our_pure = _fixture_of(PURE, ours=True)
io = _fixture_of(IO, ours=False)
our_io = _fixture_of(IO, ours=True)
debug = _fixture_of(DEBUG, ours=False)
our_debug = _fixture_of(DEBUG, ours=True)


@pytest.fixture
def jax_pure():
    return PURE["jax"]


@pytest.fixture
def jax_io():
    return IO["jax"]


@pytest.fixture
def jax_debug():
    return DEBUG["jax"]


@pytest.fixture
def spy():
    """``host, seen = spy(function)``: `host` appends copies of its arguments to `seen`."""

    def watch(function):
        seen = []

        @functools.wraps(function)
        def host(*args):
            args = tuple(np.array(arg) for arg in args)
            seen.append(args)
            return function(*args)

        return host, seen

    return watch


@pytest.fixture
def note():
    """``host, seen = note()``: a host function that appends its scalar argument to `seen`."""

    def make():
        seen = []
        return lambda x: seen.append(np.array(x).item()), seen

    return make


@pytest.fixture
def echo():
    """``host, seen = echo()``: `host` appends its scalar argument to `seen` and returns it."""

    def make():
        seen = []

        def host(x):
            x = np.array(x)
            seen.append(x.item())
            return x

        return host, seen

    return make


@pytest.fixture
def noise():
    """Return a host function that draws random numbers, and a function that predicts them."""
    generator, twin = np.random.default_rng(0), np.random.default_rng(0)

    def sample(x):
        return generator.standard_normal(np.shape(x), np.float32)

    return sample, lambda shape=(): twin.standard_normal(shape, np.float32)


@pytest.fixture
def returning():
    """``f, seen = returning(returned_value, result)``: a callback declared to return `result`.

    Its host function `oracle` returns `returned_value`.
    """

    def make(returned_value, result, **options):
        seen = []

        def oracle(x):
            seen.append(x)
            return returned_value

        return functools.partial(jaxcb.pure_callback, oracle, result, **options), seen

    return make


@pytest.fixture
def run():
    """``run(f, *args)`` returns ``f(*args)`` after all its host calls have finished."""

    def finished(f, *args):
        returned_value = jax.block_until_ready(f(*args))
        jax.effects_barrier()
        return returned_value

    return finished


@pytest.fixture
def failure():
    """``failure(f, *args)`` returns what the host function of ``f(*args)`` raised, or None.

    It also asserts that ``f(*args)`` raises an exception class that code written for JAX catches.
    """

    def raised(f, *args):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
            jax.block_until_ready(f(*args))
            jax.effects_barrier()
        return jaxcb.host_error(caught.value)

    return raised
