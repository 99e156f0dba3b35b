"""JAX compiles, and keeps, a program for every function called eagerly: jax-ml/jax#31319.

A lambda or a partial in a Python loop is a new function each time (jax-ml/jax#10121). Our eager
callbacks call the host function directly and keep nothing.
"""

import functools
import os

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._both import OURS, THEIRS

CALLS = 20
SCALAR = jax.ShapeDtypeStruct((), np.float32)
ONE = np.float32(1)
ALLOWED_MEGABYTES = 5


def eager_lambda(callbacks, i):
    return callbacks.pure_callback(lambda x: np.asarray(x) + np.float32(i), SCALAR, ONE)


def eager_partial(callbacks, i):
    return callbacks.pure_callback(functools.partial(np.add, np.float32(i)), SCALAR, ONE)


def eager_io(callbacks, i):
    return callbacks.io_callback(lambda x: np.asarray(x) + np.float32(i), SCALAR, ONE)


def eager_debug(callbacks, i):
    seen = []
    callbacks.debug_callback(lambda x: seen.append(np.asarray(x) + np.float32(i)), ONE)
    jax.effects_barrier()
    return seen[0]


def vmapped_lambda(callbacks, i):
    f = functools.partial(
        callbacks.pure_callback,
        lambda x: np.asarray(x) + np.float32(i),
        SCALAR,
        vmap_method="sequential",
    )
    return jax.vmap(f)(np.ones(1, np.float32)).item()


# Whether JAX compiles each new function. JAX's eager debug callback calls it directly, as ours do.
PROGRAMS = {
    eager_lambda: True,
    eager_partial: True,
    eager_io: True,
    eager_debug: False,
    vmapped_lambda: True,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_jax_compiles_at_every_call_and_ours_never(program, compiles):
    """The first call does not count: it may compile things unrelated to the function."""
    compiled = {}
    for name, callbacks in (("theirs", THEIRS), ("ours", OURS)):
        program(callbacks, 0)
        with compiles() as counted:
            results = [program(callbacks, i) for i in range(CALLS)]
        compiled[name] = counted.count
        assert results == [i + 1 for i in range(CALLS)]
    assert (compiled["theirs"] >= CALLS) is PROGRAMS[program]
    assert compiled["ours"] == 0


def test_decorated_function_compiles_nothing_when_called_eagerly(compiles):
    with compiles() as counted:
        results = [jaxcb.pure(lambda x, i=i: x + i, result="x")(ONE) for i in range(CALLS)]
    assert results == [i + 1 for i in range(CALLS)]
    assert counted.count == 0


def add_one(x):
    return np.asarray(x) + ONE


def test_named_function_is_compiled_once_by_jax_and_never_by_ours(compiles):
    """Hence the programs above compile because each call passes a new function."""
    for callbacks, expected in ((THEIRS, 1), (OURS, 0)):
        jax.clear_caches()
        with compiles() as counted:
            for _ in range(CALLS):
                callbacks.pure_callback(add_one, SCALAR, ONE)
        assert counted.count == expected


@pytest.mark.parametrize("callbacks", [THEIRS, OURS], ids=["theirs", "ours"])
def test_jitted_function_that_makes_a_lambda_is_compiled_once(callbacks, compiles):
    f = jax.jit(lambda x: callbacks.pure_callback(lambda x: np.asarray(x) + ONE, SCALAR, x))
    with compiles() as counted:
        results = [f(ONE).item() for _ in range(CALLS)]
    assert results == CALLS * [2]
    assert counted.count == 1


@pytest.fixture(scope="module")
def grown(child):
    """The growth of memory in megabytes, for each workload of memory.py."""
    return child("memory.py", host_calls=100_000, registrations=2_500, compiled=50, lambdas=60)


on_linux = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="only Linux has /proc/self/statm"
)


@pytest.mark.long
@on_linux
@pytest.mark.parametrize(
    "work", ["host calls", "registrations", "compiled registrations", "lambdas"]
)
def test_callbacks_that_are_no_longer_used_take_no_memory(grown, work):
    assert grown[work] <= ALLOWED_MEGABYTES


@on_linux
def test_memory_of_jax_grows_with_every_lambda(grown):
    """Each takes between a third of a megabyte and 1.5 megabytes, which JAX never releases."""
    assert grown["lambdas of jax"] > max(ALLOWED_MEGABYTES, 2 * grown["lambdas"])
