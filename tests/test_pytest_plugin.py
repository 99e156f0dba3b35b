"""The pytest plugin shows errors of host functions; a separate pytest runs with it."""

import textwrap

import pytest

TESTS = textwrap.dedent("""
    import jax
    import jupyter_jaxcb as jaxcb
    import pytest

    calls = []

    def boom(x):
        calls.append(x)
        if len(calls) % 3 == 0:
            raise KeyError("no luck")
        return x

    def model(times):
        calls.clear()
        f = jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))
        for _ in range(times):
            f(1.0)

    def test_failing():
        model(3)

    def test_caught():
        calls[:] = [1, 2]
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))(1.0)

    @pytest.mark.xfail(raises=jax.errors.JaxRuntimeError, strict=True)
    def test_expected():
        calls[:] = [1, 2]
        jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))(1.0)

    def test_own():
        assert 1 == 2
""")


@pytest.fixture(scope="module")
def out(in_process, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_model.py").write_text(TESTS)
    options = ["-q", "-p", "no:cacheprovider", "-p", "jupyter_jaxcb_pytest"]
    return in_process(["-m", "pytest"], *options, "test_model.py", cwd=folder, status=1).stdout


def test_traceback_of_a_failing_host_function_shows_user_code(out):
    assert "FAILED test_model.py::test_failing - KeyError: 'no luck'" in out
    assert '>           raise KeyError("no luck")' in out
    assert "in model" in out
    assert "raised by the pure callback boom, bound at test_model.py:" in out


def test_internals_of_jax_are_not_shown(out):
    assert "site-packages" not in out
    assert "INTERNAL" not in out


def test_other_failures_and_outcomes_do_not_change(out):
    assert "assert 1 == 2" in out
    assert "2 failed, 1 passed, 1 xfailed" in out
