"""The fixture ``host_calls``: counts, explained failures, and no cost for tests without it."""

import re

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


# If the package is installed, its entry point has loaded the plugin already; naming it is harmless.
PLUGINS = ("-p", "jupyter_jaxcb_pytest", "-p", "no:cacheprovider")


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs tests with the plugin in a separate process."""

    def run(source, *options):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess(*PLUGINS, *options)

    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return run


SUITE = {}  # source code by file name


def add_to_suite(name, source, module=MODULE):
    """Add a file to the suite that runs once for most tests of this module."""
    SUITE[name] = (module + source).lstrip()


class Ran:
    """The output of one run of pytest."""

    def __init__(self, lines):
        self._lines = lines

    def outcomes(self, name):
        """Return the outcomes of the tests of a file, by test name, from pytest's summary."""
        found = {}
        for line in self._lines:
            outcome, _, test = line.partition(" ")
            if test.startswith(f"test_{name}.py::"):
                found[test.split(" ")[0].rpartition("::")[2]] = outcome.lower()
        return found

    def failure(self, name):
        """Return the lines that pytest prints for the failing test `name`, below its headline."""
        heads = [n for n, line in enumerate(self._lines) if re.match(r"_+ \S+ _+$", line)]
        (start,) = (n for n in heads if self._lines[n].strip("_ ") == name)
        ends = [
            n for n, line in enumerate(self._lines) if re.match(r"(__|==)+ ", line) and n > start
        ]
        return self._lines[start : ends[0]]


@pytest.fixture(scope="module")
def ran(in_process, tmp_path_factory):
    """Run the suite in one separate process, so that JAX is imported once."""
    folder = tmp_path_factory.mktemp("suite")
    for name, source in SUITE.items():
        (folder / f"test_{name}.py").write_text(source)
    options = [*PLUGINS, "-rA", "-p", "no:xdist", "--rootdir", folder]
    done = in_process(["-m", "pytest"], *options, ".", cwd=folder, status=1)  # some must fail
    return Ran(done.stdout.splitlines())


def matches(lines, patterns):
    pytest.LineMatcher(lines).fnmatch_lines(patterns)


add_to_suite(
    "counts",
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
    assert one.startswith("bessel, test_counts.py:8: unused, nothing uses its result")

def test_what_is_still_computed_is_waited_for(host_calls):
    x = np.ones((200, 200), np.float32)
    jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda n, x: bessel(x @ x * 1e-3), x))(x)
    assert host_calls["bessel"].calls == 20
""",
)


@pytest.mark.long
def test_each_test_counts_only_its_calls(ran):
    names = ("before", "counts", "elided", "what_is_still_computed_is_waited_for")
    assert ran.outcomes("counts") == {f"test_{name}": "passed" for name in names}


add_to_suite(
    "full",
    """
from jupyter_jaxcb.testing import host_calls as counting

def test_full():
    with jaxcb.record(capacity=5), counting() as counted:
        jax.vmap(bessel)(np.arange(8.0))
        assert len(counted) == counted["bessel"].calls == 8
        jaxcb.pure(lambda x: x, result="x")(1.0)
        assert len(counted) == 9 and "<lambda>" in counted
""",
)


add_to_suite(
    "left",
    """
def test_count_on_the_left(host_calls):
    jax.jit(f)(1.0)
    assert host_calls["bessel"].calls == 2
""",
)


def test_failure_shows_the_calls_of_each_line(ran):
    assert ran.outcomes("left") == {"test_count_on_the_left": "failed"}
    shown = ran.failure("test_count_on_the_left")
    matches(
        shown,
        [
            "E       *assert 1 == 2",
            "E         ⚠ bessel, test_left.py:8: never called (unused) · bessel · pure · 1 call*",
            "E           test_left.py:8*bessel(x)*unused*0 calls*",
            "E           test_left.py:9*return bessel(x)*1 call*",
            "*- host calls of jupyter_jaxcb -*",
            "⚠ bessel, test_left.py:8: never called (unused) · bessel · pure · 1 call*",
        ],
    )
    assert "nothing uses its result, so JAX removed the call" in "\n".join(shown)


add_to_suite(
    "elided",
    """
def test_nothing_is_elided(host_calls):
    jax.jit(f)(1.0)
    assert not host_calls.elided
""",
)


def test_failure_of_elided_names_the_site_and_the_reason(ran):
    shown = ran.failure("test_nothing_is_elided")
    matches(shown, ["E       *assert not <elided: bessel, test_elided.py:8: unused, *>"])


add_to_suite(
    "other",
    """
def test_other(host_calls):
    bessel(1.0)
    assert {"a": 1} == {"a": 2}
""",
)


@pytest.mark.long
def test_suite_without_the_fixture_does_not_import_jax(run):
    source = """
import sys
def test_nothing():
    assert "jax" not in sys.modules and "jupyter_jaxcb" not in sys.modules

def test_failing():
    assert 1 == 2
"""
    result = run(source, "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1, failed=1)
    assert "host calls" not in result.stdout.str()


add_to_suite(
    "after",
    """
def test_failing(host_calls):
    bessel(1.0)
    raise KeyError

def test_after():
    from jupyter_jaxcb.recording import active
    assert active() is None
""",
)


FAILING = """
@jaxcb.pure(result="x")
def boom(x):
    raise ValueError("no luck")
"""
add_to_suite(
    "unittest",
    """
import unittest
class TestCase(unittest.TestCase):
    def test_in_a_class(self):
        jax.block_until_ready(jax.jit(boom)(3.0))
    @unittest.expectedFailure
    def test_expected(self):
        jax.block_until_ready(jax.jit(boom)(3.0))
    def test_in_python(self):
        self.assertEqual(1, 2)
""",
    MODULE + FAILING,
)


def test_failing_host_function_is_shown_in_a_unittest_too(ran):
    outcomes = {"test_in_a_class": "failed", "test_expected": "xfail", "test_in_python": "failed"}
    assert ran.outcomes("unittest") == outcomes
    shown = ran.failure("TestCase.test_in_a_class")
    matches(
        shown,
        [
            "*def test_in_a_class(self):",
            ">*jax.jit(boom)(3.0)*",
            "*def boom(x):",
            ">*raise ValueError(*no luck*)",
            "E       ValueError: no luck",
            "*- error of a host function -*",
        ],
    )
    assert "JaxRuntimeError: INTERNAL" not in "\n".join(shown)
    assert "\n".join(shown).count("error of a host function") == 1
    assert "error of a host function" not in "\n".join(ran.failure("TestCase.test_in_python"))


add_to_suite(
    "raised",
    """
import pytest
def test_wrong_class():
    with pytest.raises(ValueError, match="no luck"):
        jax.block_until_ready(jax.jit(boom)(3.0))

@pytest.mark.xfail(raises=jax.errors.JaxRuntimeError, strict=True)
def test_expected():
    jax.block_until_ready(jax.jit(boom)(3.0))
""",
    MODULE + FAILING,
)


def test_shown_error_names_the_class_that_jax_raised(ran):
    outcomes = {"test_wrong_class": "failed", "test_expected": "xfail"}
    assert ran.outcomes("raised") == outcomes
    matches(
        ran.failure("test_wrong_class"),
        [
            "E       ValueError: no luck",
            "*- error of a host function -*",
            "JAX raised this as jax.errors.JaxRuntimeError, which pytest.raises must "
            "expect; jupyter_jaxcb.host_error(error) returns the exception above",
        ],
    )


add_to_suite(
    "right",
    """
def test_count_on_the_right(host_calls):
    jax.jit(f)(1.0)
    assert 2 == host_calls["bessel"].calls
""",
)
