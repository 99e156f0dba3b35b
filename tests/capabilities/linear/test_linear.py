"""What is known of a linear callback: its parameters and its transpose, and errors about them."""

import operator

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


def test_names_of_linear_parameters_are_one_text_or_several():
    for given in ("b,a", "b, a", ("b", "a"), ["b", "a"]):
        assert jaxcb.pure(solve, result="b", linear=given).settings["linear"] == "b, a"


def test_transpose_of_a_function_that_is_not_linear_is_refused():
    with pytest.raises(TypeError, match="it is not registered as linear"):
        jaxcb.pure(solve, result="b").deftranspose(solve)


def test_transpose_that_takes_other_arguments_is_refused():
    made = jaxcb.pure(lambda a, b: b, result="b", linear="b")
    with pytest.raises(TypeError, match="with the cotangent of the result in the place of b"):
        made.deftranspose(lambda ct: ct)


def test_registered_function_is_refused_as_a_transpose():
    made = jaxcb.pure(lambda a, b: b, result="b", linear="b")
    with pytest.raises(TypeError, match="it is not a host function"):
        made.deftranspose(jaxcb.pure(lambda a, ct: ct, result="ct"))


def test_self_adjoint_function_takes_no_transpose_and_one_linear_parameter():
    made = jaxcb.pure(lambda a, b: b, result="b", linear="b", linear_self_adjoint=True)
    with pytest.raises(TypeError, match="it is its own adjoint"):
        made.deftranspose(lambda a, ct: ct)
    with pytest.raises(ValueError, match="Pass these as one pytree"):
        jaxcb.pure(lambda a, b: b, result="b", linear="a, b", linear_self_adjoint=True)


def test_function_with_unknown_parameters_is_refused_in_words():
    with pytest.raises(TypeError, match="its parameters are unknown"):
        jaxcb.pure(operator.itemgetter(0), result=float, linear="b")
