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


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_nonfinite_element_does_not_affect_the_steps_of_others(odd):
    f = jaxcb.pure(lambda x: x[1] ** 2, result=SCALAR, derivative="finite")
    np.testing.assert_allclose(jax.grad(f)(jnp.float32([odd, 3.0])), [0, 6], rtol=1e-3)


def test_differences_of_infinities_cause_no_warning():
    """NumPy warns about infinity minus infinity, and warnings are errors in tests."""
    f = jaxcb.pure(lambda x: x * 2, result="x", derivative="finite")
    assert np.isnan(jax.grad(f)(np.float32(np.inf)))


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


def test_mixed_derivative_with_one_finite_difference_is_allowed():
    f = jaxcb.pure(np.sin, derivative="finite")
    mixed = jax.grad(lambda y: jax.grad(lambda x: f(x) * y**2)(1.0))(3.0)
    np.testing.assert_allclose(mixed, 6 * np.cos(1), rtol=1e-3)


def test_complex_arguments_and_results_are_refused():
    f = jaxcb.pure(
        lambda x: np.exp(1j * x),
        result=lambda x: jax.ShapeDtypeStruct(x.shape, np.complex64),
        derivative="finite",
    )
    with pytest.raises(TypeError, match=r"finite differences of <lambda>: complex64 is complex"):
        jax.grad(lambda x: f(x).real)(1.0)
    g = jaxcb.pure(lambda x: x, result=lambda x: x, derivative="finite")
    with pytest.raises(TypeError, match=r"complex64 is complex\. Define a rule: @"):
        jax.grad(g, holomorphic=True)(1j)


def test_imaginary_part_of_a_perturbed_result_is_not_dropped():
    f = jaxcb.pure(
        lambda x: np.exp(1j * x) if x.dtype == np.float64 else x,
        result=lambda x: x,
        derivative="finite",
    )
    with pytest.raises(Exception, match=r"finite differences .* returned complex numbers"):
        jax.grad(f)(1.0)


def test_structure_of_a_perturbed_result_is_checked():
    f = jaxcb.pure(
        lambda x: {"a": x} if x.dtype == np.float64 else x, result=lambda x: x, derivative="finite"
    )
    with pytest.raises(Exception, match=r"returned .* expected an array"):
        jax.grad(f)(1.0)


def test_static_argument_that_is_not_hashable_is_named():
    f = jaxcb.pure(lambda x, options: x, result=lambda x, options: x, derivative="finite")
    with pytest.raises(TypeError, match=r"cannot pass \{1\} to <lambda> \(argument \[1\]\)"):
        jax.grad(f)(1.0, {1})
