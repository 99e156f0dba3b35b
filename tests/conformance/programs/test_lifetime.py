"""Programs keep their host functions alive, and nothing else does."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._arrays import SCALAR, TWO, X
from tests.conformance._every import call_of

OURS = ["pure drop-in", "pure decorator", "io drop-in", "debug decorator"]
flavors = pytest.mark.parametrize("name", ["pure jax", "io jax", "debug jax", *OURS])
our_flavors = pytest.mark.parametrize("name", OURS)


class Host:
    """A host function that can be referred to weakly, with something large to hold on to."""

    __name__ = "host"

    def __init__(self):
        self.ballast = np.zeros(100_000)

    def __call__(self, x):
        return np.asarray(x)


def made(name):
    """A callback, and whether its host function is still there."""
    host = Host()
    return call_of(name, host, SCALAR), weakref.ref(host)


def beside(f):
    """A program of the argument and the result, which may be None."""
    return lambda x: (x, f(x))


def square_beside(f):
    return lambda x: (f(jax.lax.stop_gradient(x)), x * x)[1]


def is_gone(alive):
    gc.collect()
    return alive() is None


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
    assert is_gone(alive)


@flavors
def test_jitted_function_lets_its_host_function_go_with_itself(name, run):
    f, alive = made(name)
    program = jax.jit(beside(f))
    run(program, TWO)
    del f, program
    jax.clear_caches()
    assert is_gone(alive)


@our_flavors
def test_eager_call_keeps_nothing(name, run):
    """Not the function, and nothing that a cache would have to be cleared of."""
    f, alive = made(name)
    run(f, TWO)
    del f
    assert is_gone(alive)


@our_flavors
def test_recorded_eager_call_keeps_nothing_but_its_facts(name, run):
    f, alive = made(name)
    with jaxcb.record() as r:
        run(f, TWO)
    del f
    assert is_gone(alive)
    assert len(r.recording) == 1


@our_flavors
def test_traced_and_transformed_calls_keep_nothing_once_caches_are_cleared(name, run):
    f, alive = made(name)
    jax.make_jaxpr(beside(f))(TWO)
    if "pure" not in name:
        run(jax.vmap(beside(f)), X)
    run(jax.jit(jax.grad(square_beside(f))), TWO)
    run(functools.partial(jax.lax.map, beside(f)), X)
    del f
    jax.clear_caches()
    assert is_gone(alive)


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
    assert is_gone(alive)


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
    assert is_gone(alive)


@our_flavors
def test_failed_host_function_is_released_after_sixteen_others_failed(name):
    """The last exceptions are kept, each with its frames, so that they can be looked at."""

    class Failing(Host):
        def __call__(self, x):
            raise ValueError("no luck")

    host = Failing()
    alive = weakref.ref(host)
    for function in (host, *(Failing() for _ in range(17))):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
            call_of(name, function, SCALAR)(TWO)
    del host, function
    assert is_gone(alive)


@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
def test_thousand_lambdas_leave_nothing_behind(flavor, run):
    """Each is a new one; called eagerly, nothing is compiled or kept for it."""
    alive = weakref.WeakSet()
    for _ in range(1000):
        host = Host()
        alive.add(host)
        call_of(f"{flavor} drop-in", host, SCALAR)(TWO)
    del host
    run(lambda: None)
    gc.collect()
    assert len(alive) == 0
