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


@pytest.mark.parametrize("first", range(2, 11))
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
@pytest.mark.parametrize("first", [1, 2, 5])
def test_keyboard_interrupt_and_system_exit_are_raised(stop, first):
    with pytest.raises(stop):
        jaxcb.check(failing_from(first, stop()), X)


def test_change_after_many_calls_is_the_only_finding():
    """The checks of batches and of the rule come earlier, and must not report it too."""
    count = functools.partial(next, itertools.count(1))  # not seen in the source

    @pure(vmap_method="expand_dims")
    def late(x):
        return x * (2 if count() > 9 else 1)

    finding = only(late, X)
    assert finding.kind == "same inputs twice" and "after all other calls" in finding.what


def shorter(x):
    return x[x > 0.9]


def complex_below(x):
    return np.emath.sqrt(x - 0.3)


@pytest.mark.parametrize(
    ("function", "x", "what"),
    [
        (shorter, X, r"args\[0\] = \[0.75, 1.5 , 3. \], shorter returned shape \(2,\)"),
        (complex_below, np.float32(0.5), r"args\[0\] = 0.25, .* complex"),
    ],
)
def test_result_that_depends_on_the_value_is_a_finding_with_that_value(function, x, what):
    callback = pure()(function)
    finding = only(callback, x)
    assert finding.kind == "declared result"
    with pytest.raises(AssertionError, match=what):
        raise AssertionError(finding.what)
    found = jaxcb.check(callback, x)
    assert "declared result" not in found.kept and "same inputs twice" in found.kept


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


@pytest.mark.long
def test_warning_is_shown_and_is_not_a_finding(in_process):
    """In a separate process, because pytest captures warnings."""
    program = (
        "import warnings, numpy as np, jupyter_jaxcb as jaxcb\n"
        "f = lambda x: (warnings.warn('careful'), x)[1]\n"
        "assert jaxcb.check(jaxcb.pure(f, result='x'), np.float32(1)).ok"
    )
    assert "careful" in in_process(program).stderr


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


def test_leaves_after_the_first_are_batched_too():
    last = pure(result=X, vmap_method="expand_dims")(lambda *xs: xs[0] + xs[-1].reshape(-1)[:3])
    assert only(last, *[X] * 9).kind == "vmap contract"


HIDDEN = {"jitted": jax.jit(lambda x: x + 1)}
COMPILED = [jax.jit(lambda x: x + 1).lower(X).compile()]


@pytest.mark.parametrize("function", [HIDDEN["jitted"], COMPILED[0]], ids=["jit", "compiled"])
def test_compiled_function_in_a_list_is_found_every_time(function):
    hidden = [function]
    function(X)
    for _ in range(2):
        finding = only(pure()(lambda x: np.asarray(hidden[0](x))), X)
        assert finding.kind == "no JAX inside" and "test_runs.py" in finding.what
