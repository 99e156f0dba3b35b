"""Ahead-of-time compilation, disable_jit, donation and JAX's debug checks work as in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jupyter_jaxcb as jaxcb
from tests.conformance._every import EVERY, call_of, returning_kinds
from tests.conformance._parameters import SCALAR, THREE, TWO, X, eager_or_jit, ordered_or_not

INSPECTIONS = {
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(X),
    "eval_shape": lambda f: jax.eval_shape(f, X),
    "trace": lambda f: jax.jit(f).trace(X),
    "lower": lambda f: jax.jit(f).lower(X).as_text(),
    "compile": lambda f: jax.jit(f).lower(X).compile(),
    "jaxpr of jit of vmap": lambda f: jax.make_jaxpr(jax.jit(f))(X),
    "typeof": lambda f: jax.jit(f).eval_shape(X),
}


@pytest.mark.parametrize("inspect", INSPECTIONS.values(), ids=INSPECTIONS)
@pytest.mark.parametrize("name", EVERY)
def test_inspecting_a_program_does_not_call_the_host(name, inspect):
    seen = []
    for options in ({},) if name.startswith("pure") else ({}, {"ordered": True}):
        inspect(call_of(name, seen.append, THREE, **options))
    jax.effects_barrier()
    assert seen == []


@ordered_or_not
def test_program_compiled_ahead_of_time_calls_once_per_run(io, run, echo, ordered):
    host, seen = echo()
    f = jax.jit(lambda x: io(host, SCALAR, ordered=ordered)(x) + 1).lower(TWO).compile()
    results = [run(f, np.float32(number)) for number in range(50)]
    assert results == [number + 1 for number in range(50)]
    assert seen == list(range(50))


def test_program_compiled_ahead_of_time_still_runs_after_clearing_caches(pure, run, echo):
    host, seen = echo()
    f = jax.jit(pure(host, SCALAR)).lower(TWO).compile()
    jax.clear_caches()
    assert run(f, TWO) == 2
    assert seen == [2]


@pytest.mark.parametrize("name", EVERY)
def test_clearing_caches_causes_a_new_trace_and_the_same_calls(name, run, echo):
    host, seen = echo()
    callback, traces = call_of(name, host, SCALAR), []

    @jax.jit
    def f(x):
        traces.append(None)
        return x, callback(x)

    for number in range(2):
        run(f, np.float32(number))
        run(f, np.float32(number))
        jax.clear_caches()
    assert seen == [0, 0, 1, 1]
    assert len(traces) == 2


def test_donated_argument_reaches_the_host_before_it_is_overwritten(io, run, spy):
    host, seen = spy(lambda x: x * 2)
    like = jax.ShapeDtypeStruct((4, 4), np.float32)

    def program(x):
        return io(host, like)(x) + x

    f = jax.jit(program, donate_argnums=0)
    for number in range(5):
        x = jnp.full((4, 4), float(number))
        np.testing.assert_array_equal(run(f, x), np.full((4, 4), 3.0 * number))
        assert x.is_deleted()
    for number, (got,) in enumerate(seen):
        np.testing.assert_array_equal(got, np.full((4, 4), number))
    assert len(seen) == 5


def test_host_function_may_keep_a_donated_argument(our_pure, run):
    """It gets a copy, so XLA may reuse the donated buffer."""
    kept = []
    like = jax.ShapeDtypeStruct((64, 64), np.float32)
    f = jax.jit(our_pure(lambda x: kept.append(x) or x + 1, like), donate_argnums=0)
    x = jnp.zeros((64, 64))
    for _ in range(10):
        x = f(x)
    run(lambda: x)
    assert [(x.min(), x.max()) for x in kept] == [(i, i) for i in range(10)]


PROGRAMS = {
    "call": lambda f: f(TWO),
    "jit": lambda f: jax.jit(f)(TWO),
    "scan": lambda f: jax.lax.scan(lambda c, x: (f(c) + x, None), TWO, X)[0],
    "while": lambda f: jax.lax.while_loop(lambda c: c < 9, lambda c: f(c) + 2, TWO),
    "cond": lambda f: jax.lax.cond(TWO > 1, f, lambda x: x, TWO),
    "jit of vmap": lambda f: jax.jit(jax.vmap(f))(X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_calls_under_disable_jit_are_the_same_as_with_jax(
    our_io, jax_io, run, echo, name
):
    found = []
    with jax.disable_jit():
        for io in (our_io, jax_io):
            host, seen = echo()
            result = run(PROGRAMS[name], io(host, SCALAR))
            found.append((np.asarray(result).tolist(), seen))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "vmap" not in name])
def test_pure_callback_under_disable_jit_runs_at_its_line(pure, run, echo, name):
    """JAX cannot know that a result is unused, so callbacks with unused results run too."""
    host, seen = echo()
    f, unused = pure(host, SCALAR), pure(host, SCALAR)

    def both(x):
        unused(-x)
        return f(x)

    with jax.disable_jit():
        run(PROGRAMS[name], both)
    assert len(seen) >= 2
    assert seen[::2] == [-x for x in seen[1::2]]


NUMBERS = {"nan": (jax.debug_nans, np.nan), "inf": (jax.debug_infs, np.inf)}


@eager_or_jit
@returning_kinds
@pytest.mark.parametrize(("check", "number"), NUMBERS.values(), ids=NUMBERS)
def test_debug_nans_and_debug_infs_raise_for_a_bad_result(maker, check, number, compiled):
    f = maker(lambda x: np.float32(number), SCALAR)
    np.testing.assert_array_equal(compiled(f)(TWO), np.float32(number))
    with check(True), pytest.raises(FloatingPointError, match="invalid value"):
        compiled(f)(TWO)


@eager_or_jit
@pytest.mark.parametrize(("check", "number"), NUMBERS.values(), ids=NUMBERS)
def test_debug_nans_and_debug_infs_accept_good_results_and_debug_arguments(
    pure, debug, run, check, number, compiled
):
    seen = []
    f = pure(lambda x: np.asarray(x) + 1, SCALAR)
    show = debug(lambda x: seen.append(np.asarray(x).item()))
    with check(True):
        assert run(compiled(f), TWO) == 3
        run(compiled(lambda: show(np.float32(1) * number)))
    np.testing.assert_array_equal(seen, [number])


def test_debug_nans_and_debug_infs_accept_integers(pure, run):
    f = pure(lambda x: np.int32(7), jax.ShapeDtypeStruct((), np.int32))
    with jax.debug_nans(True), jax.debug_infs(True):
        assert run(f, TWO) == 7
        assert run(jax.jit(f), TWO) == 7


LEAK_PROGRAMS = {
    "jit": lambda f: jax.jit(f)(TWO),
    "vmap": lambda f: jax.vmap(f)(X),
    "jit of vmap of scan": lambda f: jax.jit(
        jax.vmap(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])
    )(X),
    "cond": lambda f: jax.jit(lambda x: jax.lax.cond(x > 1, f, lambda x: x, x))(TWO),
    "jvp": lambda f: jax.jvp(lambda x: x * f(jax.lax.stop_gradient(x)), (TWO,), (TWO,)),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: x * f(jax.lax.stop_gradient(x))))(TWO),
    "checkpoint": lambda f: jax.checkpoint(f)(TWO),
}


@pytest.mark.parametrize("name", LEAK_PROGRAMS)
@pytest.mark.parametrize("recorded", [False, True], ids=["", "recorded"])
def test_no_tracer_leaks(our_io, run, echo, name, recorded):
    """No callback, call site, recording or table keeps a tracer."""
    host, seen = echo()
    f = our_io(host, SCALAR)
    with jax.checking_leaks():
        if recorded:
            with jaxcb.record() as r:
                run(LEAK_PROGRAMS[name], f)
            assert len(r.recording) == len(seen)
        else:
            run(LEAK_PROGRAMS[name], f)
    assert seen


def test_no_tracer_leaks_from_a_debug_callback(our_debug, run, note):
    host, seen = note()
    f = our_debug(host)
    with jax.checking_leaks():
        run(jax.jit(jax.grad(lambda x: (f(x), x * x)[1])), TWO)
        run(jax.jit(jax.vmap(lambda x: f(x))), X)
    assert sorted(seen) == [1, 2, 2, 3]


def test_export_is_refused(our_pure):
    """JAX cannot serialize a callback, because it is a function of this process."""
    f = our_pure(np.square, THREE)
    with pytest.raises(NotImplementedError, match="callback"):
        export.export(jax.jit(lambda x: f(x)))(X).serialize()
