"""Eager calls of JAX's callbacks are recorded with their lines, even while JAX is tracing."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import (
    FLAVORS,
    STRUCT,
    double,
    line_of,
    look,
    observed,
    one,
)
from tests.interface import forget_that_jax_lowered, remember_few_eager_calls, summarize


def slow_one():
    """Return 1, computed slowly, so that XLA calls the host function on one of its threads."""
    slow = jnp.ones((2000, 2000))
    for _ in range(3):
        slow = slow @ slow / 2000
    return slow[0, 0]


def test_call_without_block_until_ready_is_recorded(monkeypatch):
    forget_that_jax_lowered(monkeypatch)
    with jaxcb.observe_jax() as r:
        FLAVORS["jax pure"](slow_one())
    assert len(r.recording) == 1


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_eager_call_during_tracing_is_not_reported_as_elided(flavor):
    def f(x):
        with jax.ensure_compile_time_eval():
            FLAVORS[flavor](one())
        return x

    _, recording = observed(lambda: jax.jit(f)(one()))
    assert (len(recording), recording.elisions) == (1, ())


def test_eager_call_on_an_xla_thread_has_its_line():
    FLAVORS["jax pure"](one())  # compile it before the block

    def run():
        return jax.pure_callback(double, STRUCT, slow_one())

    result, recording = observed(run)
    (summary,) = summarize(recording)
    assert float(result) == 2
    assert summary.site.line == line_of(run, "jax.pure_callback")


def test_eager_call_with_a_python_number_is_recorded():
    _, recording = observed(lambda: jax.debug.callback(look, True))
    (fact,) = recording.lowered
    assert fact.operands == (((), "bool"),)


def test_lines_of_old_host_functions_are_forgotten(monkeypatch):
    remember_few_eager_calls(monkeypatch, 2)
    kept = []

    def run():
        for _ in range(5):
            host = lambda x: x  # noqa: E731
            kept.append(weakref.ref(host))
            jax.block_until_ready(jax.pure_callback(host, STRUCT, one()))
            jax.clear_caches()

    with jaxcb.observe_jax() as r:
        run()
        gc.collect()
        assert sum(ref() is not None for ref in kept) <= 3
    assert len(r.recording) == 5
