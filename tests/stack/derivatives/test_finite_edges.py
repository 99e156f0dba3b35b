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


def test_nan_beyond_an_edge_stays_with_the_element_at_the_edge():
    f = jaxcb.pure(quiet_sqrt, result="x", derivative="finite")
    slope = jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.float32([0.0, 1.0, 4.0]))
    assert np.isnan(slope[0])
    np.testing.assert_allclose(slope[1:], [0.5, 0.25], rtol=1e-3)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_element_that_is_not_finite_is_no_scale_for_the_others(odd):
    f = jaxcb.pure(lambda x: x[1] ** 2, result=SCALAR, derivative="finite")
    np.testing.assert_allclose(jax.grad(f)(jnp.float32([odd, 3.0])), [0, 6], rtol=1e-3)


def test_arithmetic_of_the_differences_warns_of_nothing():
    """Warnings are errors in the tests; infinity minus infinity is one of numpy's."""
    f = jaxcb.pure(lambda x: x * 2, result="x", derivative="finite")
    assert np.isnan(jax.grad(f)(np.float32(np.inf)))


def test_function_that_raises_beyond_an_edge_says_which_element_went_where():
    root = jaxcb.pure(
        lambda x: np.float32(math.sqrt(x[1])),
        result=SCALAR,
        derivative="finite",
    )
    with pytest.raises(Exception, match="math domain error") as raised:
        jax.jit(jax.grad(root))(jnp.zeros(2))
    original = jaxcb.host_error(raised.value)
    assert type(original) is ValueError
    assert "element 1 was moved from 0.0 to -0.0049" in original.__notes__[0]
    assert "define a rule with defjvp or defvjp" in original.__notes__[0]


def test_second_derivative_says_which_rule_to_write():
    f = jaxcb.pure(np.sin, derivative="finite")
    for twice in (jax.hessian(f), jax.jit(jax.grad(jax.grad(f))), jax.jacrev(jax.jacrev(f))):
        with pytest.raises(
            TypeError, match=r"cannot differentiate sin twice .*: @sin\.defjvp or sin\.defvjp\."
        ):
            twice(1.0)


def test_second_derivative_by_something_else_is_none_of_its_own():
    f = jaxcb.pure(np.sin, derivative="finite")
    mixed = jax.grad(lambda y: jax.grad(lambda x: f(x) * y**2)(1.0))(3.0)
    np.testing.assert_allclose(mixed, 6 * np.cos(1), rtol=1e-3)


def test_complex_arguments_and_results_are_refused_by_name():
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
        lambda x: {"a": x} if x.dtype == np.float64 else x,
        result=lambda x: x,
        derivative="finite",
    )
    with pytest.raises(Exception, match=r"returned .* expected an array"):
        jax.grad(f)(1.0)


def test_static_argument_that_is_not_hashable_is_named():
    f = jaxcb.pure(lambda x, options: x, result=lambda x, options: x, derivative="finite")
    with pytest.raises(TypeError, match=r"cannot pass \{1\} to <lambda> \(argument \[1\]\)"):
        jax.grad(f)(1.0, {1})
