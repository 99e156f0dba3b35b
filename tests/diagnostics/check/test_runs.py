"""`check` runs host functions that fail, print or are slow, and runs them only a few times."""

import functools
import itertools
import sys
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.check import _subject
from tests._vmap_methods import LOOPED

from ._planted import X, pure
from .test_check import only


@pytest.mark.parametrize("method", [*LOOPED, None])
def test_function_whose_method_makes_no_batches_gets_none(method):
    shapes = set()
    found = jaxcb.check(pure(vmap_method=method)(lambda x: shapes.add(x.shape) or x), X)
    assert shapes == {X.shape} and found.vmap_methods == {}
    assert (method or "vmap is refused") in found.left_out["vmap contract"]


def test_advice_names_another_method_that_is_correct():
    add = pure(result=lambda n, x: x, vmap_method="broadcast_all")(np.add)
    assert "or 'expand_dims'" in only(add, 1, X).advice


def failing_from(first, error):
    count = functools.partial(next, itertools.count(1))  # not seen in the source

    def setup(x):
        if count() >= first:
            raise error
        return x

    return pure()(setup)


@pytest.mark.parametrize("first", range(2, 9))
def test_failure_of_a_later_call_is_a_finding(first):
    finding = only(failing_from(first, RuntimeError("solver already initialized")), X)
    assert finding.kind == "same inputs twice"
    assert "fails: RuntimeError: solver already initialized" in finding.what


def test_failure_on_writable_arrays_is_a_finding():
    @pure()
    def guarded(x):
        if x.flags.writeable:
            raise RuntimeError("not mine")
        return x

    finding = only(guarded, X)
    assert finding.kind == "inputs unchanged"
    assert finding.what == "it fails on writable arrays: RuntimeError: not mine"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("first", [1, 2, 4, 6])
def test_keyboard_interrupt_and_system_exit_are_raised_and_output_is_shown_again(stop, first):
    before = sys.stdout
    with pytest.raises(stop):
        jaxcb.check(failing_from(first, stop()), X)
    assert sys.stdout is before


def test_change_after_many_calls_is_the_only_finding():
    """The checks of batches and of the rule come earlier, and must not report it too."""
    count = functools.partial(next, itertools.count(1))  # not seen in the source

    @pure(vmap_method="expand_dims")
    def late(x):
        return x * (2 if count() > 9 else 1)

    finding = only(late, X)
    assert finding.kind == "same inputs twice" and "after all other calls" in finding.what


def test_result_that_depends_on_the_value_is_a_finding_with_that_value():
    shorter = pure()(lambda x: x[x > 0.9])
    finding = only(shorter, X)
    assert finding.kind == "declared result"
    assert finding.what.startswith("called with args[0] = [0.75, 1.5 , 3. ], shorter returned")
    assert "same inputs twice" in jaxcb.check(shorter, X).kept
    finding = only(pure()(lambda x: np.emath.sqrt(x - 0.3)), np.float32(0.5))
    assert "args[0] = 0.25, " in finding.what and "complex" in finding.what


def test_errors_for_values_that_check_made_up_are_not_findings():
    @pure()
    def exact(x):
        if not (x == X).all():
            raise ValueError("beyond what it is for")
        return x

    assert jaxcb.check(exact, X).ok


def test_output_of_other_threads_is_not_captured(capsys):
    begin, printed = threading.Event(), threading.Event()

    def talk():
        begin.wait()
        print("from elsewhere")
        printed.set()

    thread = threading.Thread(target=talk)
    thread.start()
    before = sys.stdout, sys.stderr

    @pure()
    def waits(x):
        begin.set()
        printed.wait()
        return x

    assert jaxcb.check(waits, X).ok
    thread.join()
    assert capsys.readouterr().out == "from elsewhere\n"
    assert (sys.stdout, sys.stderr) == before


@pytest.fixture
def seconds(monkeypatch):
    """A list of durations whose sum is the time of the clock."""
    added = []
    monkeypatch.setattr(_subject, "clock", lambda: sum(added))
    return added


def test_slow_function_is_run_only_a_few_times(seconds):
    spend = seconds.append

    @pure(vmap_method="expand_dims")
    def slow(x):
        spend(4.0)
        return x

    found = jaxcb.check(slow, X)
    assert sum(seconds) == 12.0 and found.ok
    assert found.kept == ("source", "declared result", "no printing")
    assert found.left_out["vmap contract"] == (
        "no time left after 10 s, each run takes 4 s; pass arguments for which it is quicker"
    )


def test_jax_in_a_list_is_found_every_time():
    jitted = jax.jit(lambda x: x + 1)
    for function in (jitted, jitted.lower(X).compile()):
        hidden = [function]
        function(X)
        for _ in range(2):
            finding = only(pure()(lambda x: np.asarray(hidden[0](x))), X)  # noqa: B023
            assert finding.kind == "no JAX inside" and "test_runs.py" in finding.what


def test_numbers_that_become_equal_are_noted_and_are_no_finding():
    found = jaxcb.check(pure()(lambda x: np.float64([1.0, 1.0 + 1e-9, 2.0])), X)
    assert found.ok
    assert found.notes == (
        "it returns float64, and float32 is declared: 1.0 and 1.000000001 both become 1.0",
    )
