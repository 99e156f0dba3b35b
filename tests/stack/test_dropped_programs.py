"""Dropping a program frees its executable and everything its host function refers to.

JAXCB_PROGRAMS=1000 drops 1000 programs of each kind, which takes some minutes.
"""

import gc
import os
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.slow

PROGRAMS = int(os.environ.get("JAXCB_PROGRAMS", "3"))
SCALAR = jax.ShapeDtypeStruct((), np.float32)
BATCH = np.zeros(3, np.float32)


def writing(h):
    def write(out, x):
        out[...] = h(x)

    return write


def with_rule(h):
    callback = jaxcb.pure(h, result="x")
    callback.defjvp(lambda primals, tangents: (callback(*primals), tangents[0]))
    return jax.grad(lambda x: callback(x))


# For each name, a function that turns a host function into a function of a number that calls it.
FLAVORS = {
    "pure": lambda h: lambda x: jaxcb.pure(h, result="x")(x),
    "io": lambda h: lambda x: jaxcb.io(h, result="x")(x),
    "ordered io": lambda h: lambda x: jaxcb.io(h, result="x", ordered=True)(x),
    "debug": lambda h: lambda x: (jaxcb.debug(h)(x), x)[1],
    "buffer": lambda h: lambda x: jaxcb.buffer(writing(h), result="x")(x),
    "tap": lambda h: lambda x: jaxcb.tap(h)(x),
    "pure_callback": lambda h: lambda x: jaxcb.pure_callback(h, SCALAR, x),
    "debug_print": lambda h: lambda x: (jaxcb.debug_print("{}", x), x)[1],
    "vmap": lambda h: lambda x: jax.vmap(jaxcb.pure(h, result="x"))(x + BATCH).sum(),
    "rule": with_rule,
    "finite": lambda h: jax.grad(lambda x: jaxcb.pure(h, result="x", derivative="finite")(x)),
    "inner jit": lambda h: lambda x: jax.jit(lambda y: jaxcb.pure(h, result="x")(y))(x) + 1,
    "unused": lambda h: lambda x: (jaxcb.pure(h, result="x")(x), x)[1],
    "jax pure": lambda h: lambda x: jax.pure_callback(h, SCALAR, x),
    "jax io": lambda h: lambda x: io_callback(h, SCALAR, x, ordered=True),
    "jax debug": lambda h: lambda x: (jax.debug.callback(h, x), x)[1],
    "jax print": lambda h: lambda x: (jax.debug.print("{x}", x=x), x)[1],
}


def plain(f):
    jax.block_until_ready(jax.jit(f)(1.0))


def recorded(f):
    with jaxcb.record():
        plain(f)


def explained(f):
    jaxcb.explain(f)(1.0)


def observed(f):
    with jaxcb.observe_jax():
        plain(f)


def ahead(f):
    with jaxcb.record():
        jax.jit(f).lower(1.0).compile()(1.0)


def only_lowered(f):
    with jaxcb.record():
        jax.jit(f).lower(1.0)


FEW = ("pure", "tap", "jax pure")
RUNS = {
    "plain": (plain, FEW),  # like recorded, but nothing is recorded
    "recorded": (recorded, tuple(FLAVORS)),
    "explained": (explained, tuple(FLAVORS)),
    "observed": (observed, ("pure", *(flavor for flavor in FLAVORS if flavor.startswith("jax")))),
    "ahead": (ahead, FEW),
    "only lowered": (only_lowered, FEW),
}


def executables():
    return len(jax.devices()[0].client.live_executables())


def drop(run, flavor, count):
    """Make programs and drop them; return weak references to arrays of their host functions."""
    large = []
    for _ in range(count):
        array = np.zeros(1 << 18, np.float32)
        large.append(weakref.ref(array))

        def host(x, *_, array=array):
            return np.float32(array[0])

        run(FLAVORS[flavor](host))
        jax.effects_barrier()
    return large


def collect():
    for _ in range(3):  # a finalizer may leave garbage for the next collection
        gc.collect()


@pytest.mark.parametrize("name", RUNS)
def test_dropped_programs_leave_nothing_behind(name):
    run, flavors = RUNS[name]
    jax.clear_caches()
    for flavor in flavors:
        drop(run, flavor, 1)  # also compiles what JAX itself compiles once
    collect()
    before = executables()
    large = {flavor: drop(run, flavor, PROGRAMS) for flavor in flavors}
    collect()
    alive = {flavor: sum(ref() is not None for ref in refs) for flavor, refs in large.items()}
    assert {flavor: count for flavor, count in alive.items() if count > 1} == {}
    assert executables() - before < PROGRAMS


@pytest.mark.parametrize("transformed", [lambda g: g, lambda g: lambda x: g(x) + 1, jax.vmap])
def test_explaining_a_function_repeatedly_leaves_nothing_behind(transformed):
    """JAX keeps its traces of a function as long as the function, which is not dropped."""
    callback = jaxcb.pure(lambda x: x, result=lambda x: x)
    function = transformed(jax.jit(lambda x: callback(x) + 1))
    jaxcb.explain(function)(BATCH)
    gc.collect()
    before = executables()
    for _ in range(PROGRAMS):
        (outcome,) = jaxcb.explain(function)(BATCH).outcomes
        assert outcome.status == "kept"
    gc.collect()
    assert executables() == before
    assert (function(jnp.asarray(BATCH)) == function(jnp.asarray(BATCH))).all()


def test_parameters_of_two_traces_of_a_bind_are_equal():
    """JAX's caches refer to it weakly; equality, hash and repr do not depend on the bind."""

    def host(x):
        return x

    def bound():
        jaxpr = jax.make_jaxpr(lambda x: jaxcb.pure_callback(host, SCALAR, x))(1.0)
        return jaxpr.eqns[0].params["callback"]

    first = bound()
    jax.clear_caches()
    second = bound()
    assert first is not second and first == second and hash(first) == hash(second)
    assert weakref.ref(first)() is first
    assert repr(first).startswith("host@test_dropped_programs.py:")
    assert not callable(first)
