"""The fixture ``host_calls``: counts, messages that say why, and no cost where it is not used."""

import pytest

pytest_plugins = ["pytester"]

MODULE = """
import jax, numpy as np, jupyter_jaxcb as jaxcb

@jaxcb.pure(result="x")
def bessel(x):
    return 2 * x

def f(x):
    bessel(x)
    return bessel(x)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs tests in a process of their own, with the plugin as its entry point would load it."""

    def run(source, *options, module=MODULE):
        # Where the package is installed, its entry point has loaded the plugin already.
        pytester.makepyfile(module + source)
        named = ("-p", "jupyter_jaxcb_pytest", "-p", "no:cacheprovider")
        return pytester.runpytest_subprocess(*named, *options)

    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return run


def test_counts_are_those_of_the_test(run):
    result = run(
        """
def test_before(host_calls):
    bessel(1.0)
    assert host_calls["bessel"].calls == 1 and len(host_calls) == 1

def test_counts(host_calls):
    assert not host_calls and "bessel" not in host_calls
    jax.vmap(bessel)(np.arange(3.0))
    assert host_calls["bessel"].calls == 3
    assert host_calls["bessel"].crossings == 1
    assert "bessel" in host_calls and "other" not in host_calls
    assert host_calls["other"].calls == 0
    assert not host_calls.elided and host_calls["bessel"].elided == 0
    assert repr(host_calls["bessel"]) == "<3 calls of bessel>"

def test_elided(host_calls):
    jax.jit(f)(1.0)
    assert host_calls["bessel"].calls == 1
    assert host_calls["bessel"].elided == 1
    (one,) = host_calls.elided
    assert one.startswith("bessel, test_counts_are_those_of_the_test.py:8: unused, its result is")

def test_what_is_still_computed_is_waited_for(host_calls):
    x = np.ones((200, 200), np.float32)
    jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda n, x: bessel(x @ x * 1e-3), x))(x)
    assert host_calls["bessel"].calls == 20
"""
    )
    result.assert_outcomes(passed=4)


def test_calls_that_a_full_log_does_not_keep_are_counted_too(run):
    result = run(
        """
from jupyter_jaxcb.testing import host_calls as counting

def test_full():
    with jaxcb.record(capacity=5), counting() as counted:
        jax.vmap(bessel)(np.arange(8.0))
        assert len(counted) == counted["bessel"].calls == 8
        jaxcb.pure(lambda x: x, result="x")(1.0)
        assert len(counted) == 9 and "<lambda>" in counted
"""
    )
    result.assert_outcomes(passed=1)


def test_failure_shows_which_line_called_how_often(run):
    result = run(
        """
def test_count(host_calls):
    jax.jit(f)(1.0)
    assert host_calls["bessel"].calls == 2
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E       *assert 1 == 2",
            "E         bessel · pure · 1 call · *1 elided",
            "E           test_failure_*.py:8*bessel(x)*unused*0 calls*",
            "E           test_failure_*.py:9*return bessel(x)*live*1 call*",
            "*- host calls of jupyter_jaxcb -*",
            "bessel · pure · 1 call*",
        ],
        consecutive=False,
    )
    assert "its result is never used, so JAX dropped the call" in result.stdout.str()


def test_failure_of_elided_names_the_site_and_the_reason(run):
    result = run(
        """
def test_nothing_is_elided(host_calls):
    jax.jit(f)(1.0)
    assert not host_calls.elided
"""
    )
    result.stdout.fnmatch_lines(["E       *assert not <elided: bessel, test_*.py:8: unused, *>"])


def test_other_failures_show_the_host_calls_too(run):
    result = run(
        """
def test_other(host_calls):
    bessel(1.0)
    assert {"a": 1} == {"a": 2}
"""
    )
    result.stdout.fnmatch_lines(["*- host calls of jupyter_jaxcb -*", "bessel · pure · 1 call*"])


def test_suite_that_does_not_use_it_does_not_import_jax(run):
    source = """
import sys
def test_nothing():
    assert "jax" not in sys.modules and "jupyter_jaxcb" not in sys.modules

def test_failing():
    assert 1 == 2
"""
    result = run(source, "-p", "no:hypothesispytest", module="")
    result.assert_outcomes(passed=1, failed=1)
    assert "host calls" not in result.stdout.str()


def test_off_is_told(run, monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    result = run("def test_off(host_calls): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*RuntimeError: JUPYTER_JAXCB=off: host calls are not recorded*"])


def test_recorder_is_gone_after_a_failing_test(run):
    result = run(
        """
def test_failing(host_calls):
    bessel(1.0)
    raise KeyError

def test_after():
    from jupyter_jaxcb.recording import active
    assert active() is None
"""
    )
    result.assert_outcomes(passed=1, failed=1)


FAILING = """
@jaxcb.pure(result="x")
def boom(x):
    raise ValueError("no luck")
"""


def test_failing_host_function_is_shown_in_a_unittest_as_in_a_function(run):
    result = run(
        """
import unittest
class TestCase(unittest.TestCase):
    def test_in_a_class(self):
        jax.block_until_ready(jax.jit(boom)(3.0))
    @unittest.expectedFailure
    def test_expected(self):
        jax.block_until_ready(jax.jit(boom)(3.0))
    def test_other(self):
        self.assertEqual(1, 2)
""",
        module=MODULE + FAILING,
    )
    result.assert_outcomes(failed=2, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*def test_in_a_class(self):",
            ">*jax.jit(boom)(3.0)*",
            "*def boom(x):",
            ">*raise ValueError(*no luck*)",
            "E       ValueError: no luck",
            "*- error of a host function -*",
        ]
    )
    assert "JaxRuntimeError: INTERNAL" not in result.stdout.str()
    assert result.stdout.str().count("error of a host function") == 1


def test_shown_error_says_as_what_it_was_raised(run):
    result = run(
        """
import pytest
def test_wrong_class():
    with pytest.raises(ValueError, match="no luck"):
        jax.block_until_ready(jax.jit(boom)(3.0))

@pytest.mark.xfail(raises=jax.errors.JaxRuntimeError, strict=True)
def test_expected():
    jax.block_until_ready(jax.jit(boom)(3.0))
""",
        module=MODULE + FAILING,
    )
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "E       ValueError: no luck",
            "*- error of a host function -*",
            "JAX raised this as jax.errors.JaxRuntimeError, which is what pytest.raises has to "
            "expect; jupyter_jaxcb.host_error(error) finds the exception above in it",
        ]
    )


def test_count_on_the_right_of_a_comparison_says_so_too(run):
    result = run(
        """
def test_count(host_calls):
    jax.jit(f)(1.0)
    assert 2 == host_calls["bessel"].calls
"""
    )
    result.stdout.fnmatch_lines(["E       *assert 2 == 1", "E         bessel · pure · 1 call · *"])
