"""Calling one callback inside the host function of another is reported."""

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def test_helper_that_is_a_callback_too_is_reported_with_advice():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    def solve(x):
        return x + slope(x)

    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="pure callback solve calls slope") as w:
        jaxcb.pure(solve, result="x")
    (warning,) = w
    assert "%%jax_callback pure solve" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, solve.__code__.co_firstlineno + 1)


def test_wrapped_python_function_of_a_callback_may_be_called():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    solve = jaxcb.pure(lambda x: x + slope.__wrapped__(x), result="x")
    assert solve(np.float32(3)) == 0
