"""``derivative="finite"`` where there is no derivative: edges, failures, refused arguments."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def quiet_sqrt(x):
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def test_nan_outside_the_domain_only_affects_the_element_at_the_edge():
    f = jaxcb.pure(quiet_sqrt, result="x", derivative="finite")
    slope = jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.float32([0.0, 1.0, 4.0]))
    assert np.isnan(slope[0])
    np.testing.assert_allclose(slope[1:], [0.5, 0.25], rtol=1e-3)


def test_error_outside_the_domain_names_the_perturbed_element():
    root = jaxcb.pure(lambda x: np.float32(math.sqrt(x[1])), result=SCALAR, derivative="finite")
    with pytest.raises(Exception, match=r"math domain error|expected a nonnegative") as raised:
        jax.jit(jax.grad(root))(jnp.zeros(2))
    original = jaxcb.host_error(raised.value)
    assert type(original) is ValueError
    assert "element 1 was moved from 0.0 to -0.0049" in original.__notes__[0]
    assert "define a rule with defjvp or defvjp" in original.__notes__[0]


def test_error_of_a_second_derivative_names_the_rule_to_define():
    f = jaxcb.pure(np.sin, derivative="finite")
    for twice in (jax.hessian(f), jax.jit(jax.grad(jax.grad(f))), jax.jacrev(jax.jacrev(f))):
        with pytest.raises(
            TypeError, match=r"cannot differentiate sin twice .*: @sin\.defjvp or sin\.defvjp\."
        ):
            twice(1.0)


def test_complex_arguments_and_results_are_refused():
    f = jaxcb.pure(
        lambda x: np.exp(1j * x),
        result=lambda x: jax.ShapeDtypeStruct(x.shape, np.complex64),
        derivative="finite",
    )
    with pytest.raises(TypeError, match=r"finite differences of f: complex64 is complex"):
        jax.grad(lambda x: f(x).real)(1.0)
    g = jaxcb.pure(lambda x: x, result=lambda x: x, derivative="finite")
    with pytest.raises(TypeError, match=r"complex64 is complex\. Define a rule: @"):
        jax.grad(g, holomorphic=True)(1j)
