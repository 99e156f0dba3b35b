"""Calls of JAX's own callbacks outside of any trace, or while something else is traced."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.diagnostics.observe._own import FLAVORS, STRUCT, double, line_of, look, observed, one


def test_eager_call_that_was_compiled_before_has_its_line():
    FLAVORS["jax pure"](one())
    _, recording = observed(lambda: jax.pure_callback(double, STRUCT, one()))
    (summary,) = summarize(recording)
    assert "jax.pure_callback(double" in summary.site.source
    assert summary.calls == 1


def slow_one():
    """Takes a while to be computed: what is called with it runs on a thread of XLA's."""
    slow = jnp.ones((2000, 2000))
    for _ in range(3):
        slow = slow @ slow / 2000
    return slow[0, 0]


def test_call_that_nobody_waited_for_is_recorded(monkeypatch):
    monkeypatch.setattr("jupyter_jaxcb.stack.core._listener._any_lowered", False)
    with jaxcb.observe_jax() as r:
        FLAVORS["jax pure"](slow_one())
    assert len(r.recording) == 1


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_call_while_a_function_is_traced_is_not_taken_for_one_that_it_lost(flavor):
    def f(x):
        with jax.ensure_compile_time_eval():
            FLAVORS[flavor](one())
        return x

    _, recording = observed(lambda: jax.jit(f)(one()))
    assert (len(recording), recording.elisions) == (1, ())


def test_eager_call_on_a_thread_of_xlas_has_its_line():
    FLAVORS["jax pure"](one())  # compiled before

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


def test_lines_of_many_functions_are_not_remembered_for_ever(monkeypatch):
    monkeypatch.setattr("jupyter_jaxcb.diagnostics.observe._eager.MAX_LATEST", 2)
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
