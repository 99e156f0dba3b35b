"""What is known of a linear callback: its parameters and its transpose, and errors about them."""

import pytest

import jupyter_jaxcb as jaxcb


def solve(a, b, /, c=0, *rest, key=None):
    return b


@pytest.mark.parametrize(
    ("linear", "error", "words"),
    [
        ("d", ValueError, "it has no parameter 'd'"),
        ("", ValueError, "it is no list of different parameters"),
        ("b,b", ValueError, "it is no list of different parameters"),
        (3, TypeError, "name the parameters in which the function is linear"),
        ("rest", ValueError, "rest cannot be passed by position"),
        ("key", ValueError, "key cannot be passed by position"),
    ],
)
def test_linear_parameters_that_cannot_be_are_refused(linear, error, words):
    with pytest.raises(error, match=words):
        jaxcb.pure(solve, result="b", linear=linear)


def test_self_adjoint_function_takes_no_transpose_and_one_linear_parameter():
    made = jaxcb.pure(lambda a, b: b, result="b", linear="b", linear_self_adjoint=True)
    with pytest.raises(TypeError, match="it is its own adjoint"):
        made.deftranspose(lambda a, ct: ct)
    with pytest.raises(ValueError, match="Pass these as one pytree"):
        jaxcb.pure(lambda a, b: b, result="b", linear="a, b", linear_self_adjoint=True)
