"""Only programs keep their host functions alive."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._every import call_of
from tests.conformance._parameters import SCALAR, TWO, X

OURS = ["pure drop-in", "pure decorator", "io drop-in", "debug decorator"]
flavors = pytest.mark.parametrize("name", ["pure jax", "io jax", "debug jax", *OURS])
our_flavors = pytest.mark.parametrize("name", OURS)


class Host:
    """A host function with a large attribute that supports weak references."""

    __name__ = "host"

    def __init__(self):
        self.ballast = np.zeros(100_000)

    def __call__(self, x):
        return np.asarray(x)


def made(name):
    """Return a callback and a weak reference to its host function."""
    host = Host()
    return call_of(name, host, SCALAR), weakref.ref(host)


def beside(f):
    """Return a function that returns its argument and the result of `f`, which may be None."""
    return lambda x: (x, f(x))


def square_beside(f):
    return lambda x: (f(jax.lax.stop_gradient(x)), x * x)[1]


def is_collected(alive):
    gc.collect()
    return alive() is None


@pytest.mark.long
@flavors
def test_program_keeps_its_host_function_while_it_can_run(name, run):
    f, alive = made(name)
    program = jax.jit(beside(f)).lower(TWO).compile()
    del f
    jax.clear_caches()
    gc.collect()
    assert alive() is not None
    assert run(program, TWO)[0] == 2
    del program
    jax.clear_caches()
    assert is_collected(alive)


@flavors
def test_deleting_a_jitted_function_releases_its_host_function(name, run):
    f, alive = made(name)
    program = jax.jit(beside(f))
    run(program, TWO)
    del f, program
    jax.clear_caches()
    assert is_collected(alive)


@our_flavors
def test_eager_call_does_not_keep_its_host_function(name, run):
    """The function is collected without clearing any cache."""
    f, alive = made(name)
    run(f, TWO)
    del f
    assert is_collected(alive)


@our_flavors
def test_recording_of_an_eager_call_does_not_keep_its_host_function(name, run):
    f, alive = made(name)
    with jaxcb.record() as r:
        run(f, TWO)
    del f
    assert is_collected(alive)
    assert len(r.recording) == 1


@our_flavors
def test_clearing_caches_releases_host_functions_of_transformed_calls(name, run):
    f, alive = made(name)
    jax.make_jaxpr(beside(f))(TWO)
    if "pure" not in name:
        run(jax.vmap(beside(f)), X)
    run(jax.jit(jax.grad(square_beside(f))), TWO)
    run(functools.partial(jax.lax.map, beside(f)), X)
    del f
    jax.clear_caches()
    assert is_collected(alive)


@flavors
def test_closure_over_a_large_array_is_released(name, run):
    class Ballast(np.ndarray):
        pass

    ballast = np.zeros(100_000, np.float32).view(Ballast)
    alive = weakref.ref(ballast)
    f = call_of(name, lambda x, ballast=ballast: np.asarray(x) + ballast[0], SCALAR)
    program = jax.jit(beside(f))
    assert run(program, TWO)[0] == 2
    del ballast, f, program
    jax.clear_caches()
    assert is_collected(alive)


@our_flavors
def test_arguments_and_results_of_a_call_are_released(name, run):
    class Seen(list):
        pass

    seen = Seen()

    def host(x):
        result = np.array(x)
        seen.extend(weakref.ref(array) for array in (x, result))
        return result

    f = call_of(name, host, jax.ShapeDtypeStruct((1000,), np.float32))
    for g in (f, jax.jit(f)):
        run(g, jnp.ones(1000))
    gc.collect()
    assert len(seen) == 4
    assert [array() for array in seen] == 4 * [None]


@our_flavors
def test_static_arguments_are_released(name, run):
    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    f = call_of(name, lambda x, thing: np.asarray(x), SCALAR)
    program = jax.jit(beside(functools.partial(f, thing=thing)))
    run(program, TWO)
    run(functools.partial(f, thing=thing), TWO)
    del thing, program
    jax.clear_caches()
    assert is_collected(alive)


@our_flavors
def test_failed_host_function_is_released_after_sixteen_later_failures(name):
    """The stack keeps the latest exceptions with their frames, so that users can inspect them."""

    class Failing(Host):
        def __call__(self, x):
            raise ValueError("no luck")

    host = Failing()
    alive = weakref.ref(host)
    for function in (host, *(Failing() for _ in range(17))):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
            call_of(name, function, SCALAR)(TWO)
    del host, function
    assert is_collected(alive)


@pytest.mark.long
@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
def test_thousand_lambdas_leave_nothing_behind(flavor, run):
    """Eager calls compile nothing and keep nothing, so every host function is collected."""
    alive = weakref.WeakSet()
    for _ in range(1000):
        host = Host()
        alive.add(host)
        call_of(f"{flavor} drop-in", host, SCALAR)(TWO)
    del host
    run(lambda: None)
    gc.collect()
    assert len(alive) == 0
