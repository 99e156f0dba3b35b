"""What a later observation knows of programs that were compiled while callbacks were only noted.

A notebook notes JAX's callbacks from ``%load_ext`` on.
"""

import gc
import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import (
    FLAVORS,
    NAMES,
    STRUCT,
    double,
    line_of,
    observed,
    one,
)
from tests.interface import noted, programs_to_wait_for, start_noting, stop_noting, summarize

flavors = pytest.mark.parametrize("flavor", FLAVORS)


@pytest.fixture(autouse=True)
def _noting():
    user = object()
    start_noting(user)
    yield
    stop_noting(user)


@pytest.fixture
def recorded():
    """Record meanwhile, as a notebook does."""
    with jaxcb.record() as r:
        yield r


@flavors
def test_program_compiled_before_the_block_has_its_line_and_status(flavor, recorded):
    def f(x):
        return FLAVORS[flavor](x)

    f = jax.jit(f)
    jax.block_until_ready(f(one()))
    jax.effects_barrier()
    _, recording = observed(lambda: [f(one()) for _ in range(3)])
    (summary,) = summarize(recording)
    assert (summary.site.flavor, summary.site.function) == (flavor, NAMES[flavor])
    assert (str(summary.status), summary.calls, summary.expected) == ("kept", 3, 3)
    assert f'"{flavor}": lambda' in summary.site.source
    assert summary.notes == ()
    (caller,) = summary.site.callers
    assert caller.line == line_of(f.__wrapped__, "FLAVORS[flavor]")


def test_print_compiled_before_the_block_has_its_line(capsys, recorded):
    def f(x):
        jax.debug.print("x is {}", x)
        jax.debug.print("x is {}", x)

    f = jax.jit(f)
    f(one())
    jax.effects_barrier()
    _, recording = observed(lambda: f(one()))
    first = line_of(f.__wrapped__, "def f") + 1
    lines = [(s.site.function, s.site.line, s.calls) for s in summarize(recording)]
    assert lines == [("debug.print", first, 1), ("debug.print", first + 1, 1)]
    assert capsys.readouterr().out == "x is 1.0\n" * 4


def test_elided_callbacks_of_a_program_compiled_before_are_known(recorded):
    def f(x):
        jax.pure_callback(double, STRUCT, x)
        return jax.lax.cond(x > 0, lambda x: jax.pure_callback(double, STRUCT, x), lambda x: x, x)

    f = jax.jit(f)
    f(one())
    for _ in range(2):  # also in a second block
        _, recording = observed(lambda: f(-one()))
        assert [str(s.status) for s in summarize(recording)] == ["unused", "not_reached"]


def test_vmaps_of_a_program_compiled_before_are_known(recorded):
    f = jax.jit(jax.vmap(lambda x: jax.pure_callback(double, STRUCT, x, vmap_method="expand_dims")))
    f(jnp.ones(3))
    _, recording = observed(lambda: f(jnp.ones(3)))
    (fact,) = recording.lowered
    assert [(level.size, level.method) for level in fact.levels] == [(3, "expand_dims")]


def test_lines_are_known_without_a_recorder():
    def f(x):
        return jax.pure_callback(double, STRUCT, x)

    f = jax.jit(f)
    f(one())
    _, recording = observed(lambda: f(one()))
    (summary,) = summarize(recording)
    assert (summary.site.line, summary.calls) == (line_of(f.__wrapped__, "return"), 1)


@flavors
def test_noted_callbacks_are_not_in_a_recording_without_observation(flavor):
    ours = jaxcb.pure(double, result=STRUCT)
    f = jax.jit(lambda x: (FLAVORS[flavor](x), ours(x)))
    with jaxcb.record() as r:
        jax.block_until_ready(f(one()))
        jax.effects_barrier()
        FLAVORS[flavor](one())
    assert {site.flavor for site in r.recording.bound} == {"pure"}
    assert [fact.site.flavor for fact in r.recording.lowered] == ["pure"]
    assert [outcome.site.flavor for outcome in r.recording.outcomes] == ["pure"]
    assert len(r.recording.compilations) == 1


def test_cells_do_not_wait_for_noted_callbacks(recorded):
    before = programs_to_wait_for()
    jax.jit(FLAVORS["jax debug"])(one())
    assert programs_to_wait_for() == before


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_nothing_of_this_package_runs_when_a_noted_program_calls_its_host_function(flavor):
    callers, here = [], sys._getframe()

    def host(x):
        frame = sys._getframe(1)
        while frame is not None and frame is not here:
            callers.append(frame.f_globals["__name__"].partition(".")[0])
            frame = frame.f_back
        return x

    binds = {
        "jax pure": lambda x: jax.pure_callback(host, STRUCT, x),
        "jax io": lambda x: io_callback(host, STRUCT, x),
        "jax debug": lambda x: jax.debug.callback(host, x),
    }
    f = jax.jit(binds[flavor])
    for _ in range(2):
        callers.clear()
        jax.block_until_ready(f(one()))
        jax.effects_barrier()
    assert "jax" in callers
    assert "jupyter_jaxcb" not in callers


def test_eager_calls_are_not_noted():
    jax.pure_callback(double, STRUCT, one())

    def run():
        return jax.pure_callback(double, STRUCT, one())

    _, recording = observed(run)
    (summary,) = summarize(recording)
    assert summary.site.line == line_of(run, "return")


@pytest.mark.long
def test_notes_die_with_their_program_and_keep_no_argument(recorded):
    gc.collect()
    before, struct = noted(), jax.ShapeDtypeStruct((100,), np.float32)
    programs = [jax.jit(lambda x: jax.pure_callback(double, struct, x)) for _ in range(5)]
    arguments = [jnp.ones(100) for _ in programs]
    for f, x in zip(programs, arguments, strict=True):
        f(x).block_until_ready()
    own = noted() - before
    assert len(own) == 3 * 5
    arguments = [weakref.ref(x) for x in arguments]
    del x
    assert [ref() for ref in arguments] == [None] * 5
    del f, programs[:]
    gc.collect()
    assert not own & noted()  # those of earlier tests may die meanwhile, too


def test_jaxpr_traced_while_noting_can_be_run_eagerly(capsys):
    closed = jax.make_jaxpr(lambda x: jax.pure_callback(double, STRUCT, x))(one())

    def run():
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, one())

    assert float(run()[0]) == 2
    _, recording = observed(run)
    assert float(run()[0]) == 2
    (summary,) = summarize(recording)
    assert summary.calls == 1
