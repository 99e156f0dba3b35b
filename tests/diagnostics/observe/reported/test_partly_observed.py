"""Reports are correct even if JAX's callbacks were observed only part of the time."""

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import FLAVORS, STRUCT, double, one
from tests.interface import summarize, to_text

flavors = pytest.mark.parametrize("flavor", FLAVORS)


def statuses(recording):
    return [(s.site.flavor, str(s.status), s.calls, s.expected) for s in summarize(recording)]


def sometimes():
    """Return a function with an unused callback, and one called only for positive numbers."""

    def f(x):
        jax.pure_callback(lambda x: x, STRUCT, x)
        return jax.lax.cond(x > 0, lambda x: jax.pure_callback(double, STRUCT, x), lambda x: x, x)

    return jax.jit(f)


@flavors
def test_unobserved_block_reports_nothing_about_callbacks_of_jax(flavor):
    f = jax.jit(lambda x: FLAVORS[flavor](x))
    with jaxcb.record():
        with jaxcb.observe_jax():
            jax.block_until_ready(f(one()))
        with jaxcb.record() as r:
            jax.block_until_ready(f(one()))
    assert (statuses(r.recording), r.recording.outcomes) == ([], ())


@flavors
def test_partly_observed_calls_are_reported_as_incomplete(flavor):
    f = jax.jit(lambda x: FLAVORS[flavor](x))
    with jaxcb.record() as r:
        with jaxcb.observe_jax():
            jax.block_until_ready(f(one()))
        jax.block_until_ready(f(one()))
    assert statuses(r.recording) == [(flavor, "kept", 1, None)]
    assert "calls made while JAX's callbacks were not observed are not counted" in to_text(
        r.recording
    )


def test_branch_entered_while_not_observed_is_not_reported_as_not_reached():
    f = sometimes()
    with jaxcb.record() as r:
        with jaxcb.observe_jax():
            f(-one())
        f(one())
    (unused, unknown) = sorted(summarize(r.recording), key=lambda s: s.site.line)
    assert (unknown.status, unknown.calls) == ("unknown", 0)
    assert unknown.reason.startswith("JAX's own callbacks were observed during only part")
    assert "jaxcb.observe_jax()" in unknown.advice
    assert unused.status == "unused"  # follows from compilation alone


def test_block_that_begins_observed_and_ends_unobserved_is_partly_observed():
    f = sometimes()
    observing = jaxcb.observe_jax()
    observing.__enter__()
    f(-one())
    with jaxcb.record() as r:
        f(-one())
        observing.__exit__(None, None, None)
        f(one())
    assert {str(s.status) for s in summarize(r.recording)} == {"unused", "unknown"}


def test_block_in_which_observing_stopped_and_restarted_is_partly_observed():
    f = sometimes()
    with jaxcb.record():
        first = jaxcb.observe_jax()
        first.__enter__()
        with jaxcb.record() as r:
            f(-one())
            first.__exit__(None, None, None)
            f(one())
            second = jaxcb.observe_jax()
            second.__enter__()
        second.__exit__(None, None, None)
    assert "not_reached" not in {str(s.status) for s in summarize(r.recording)}


def test_fully_observed_block_reports_statuses():
    f = sometimes()
    with jaxcb.record(), jaxcb.observe_jax(), jaxcb.record() as r:
        f(-one())
    assert {str(s.status) for s in summarize(r.recording)} == {"unused", "not_reached"}


def test_programs_that_ran_only_while_observed_have_statuses_in_a_longer_recording():
    """In a notebook, recording starts before the first line of the cell."""
    f, g = sometimes(), jax.jit(lambda x: jax.pure_callback(double, STRUCT, x))
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(lambda x: x + 1)(one()))
        with jaxcb.observe_jax():
            jax.block_until_ready(f(-one()))
            g.lower(one()).compile()
    assert {str(s.status) for s in summarize(r.recording)} == {"unused", "not_reached", "not_run"}
    assert "not observed" not in to_text(r.recording)


def test_our_callbacks_have_statuses_in_a_partly_observed_block():
    ours = jaxcb.io(double, result=STRUCT)
    f = jax.jit(ours)
    with jaxcb.record() as r:
        with jaxcb.observe_jax():
            f(one())
        jax.block_until_ready(f(one()))
    assert statuses(r.recording) == [("io", "kept", 2, 2)]
