"""JAX in host functions whose code does not mention it: jitted functions and our callbacks."""

import warnings

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

CAN_BLOCK = jax.__version_info__ < (0, 12)
SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.arange(3, dtype=np.float32)


def test_jitted_host_function_is_reported_when_it_is_lowered_and_when_it_runs():
    f = jax.jit(lambda x: jaxcb.pure_callback(jax.jit(lambda x: x[0]), SCALAR, x))
    with warnings.catch_warnings(record=True) as seen, jaxcb.record():
        warnings.simplefilter("always")
        assert f(X).item() == 0
    named = [
        "<lambda> is itself a JAX function, as made by @jax.jit. This may deadlock on JAX"
        in str(warning.message)
        for warning in seen
    ]
    assert named == [True, True] * CAN_BLOCK


def test_callback_in_a_host_function_is_reported_at_the_line_that_calls_it():
    """The line is in the user's code, not in this package."""
    inner = jaxcb.pure(lambda x: x, result="x")
    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="calls inner"):
        outer = jaxcb.pure(lambda x: np.asarray(inner(x)), result="x")
    (finding,) = jaxcb.check(outer, X).findings
    assert "it uses JAX: test_reentry_unseen.py:" in finding.what
