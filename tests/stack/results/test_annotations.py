"""Results declared by jaxtyping annotations: the arguments determine dimensions and dtypes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Array, Bool, Complex, Float, Float32, Inexact, Int, Int8, Key, Num, Shaped

import jupyter_jaxcb as jaxcb
from tests.interface import annotated_result

FLOATS = ("float32", "bfloat16", "float16")


def struct(shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def same(x: Float[Array, "*n"]) -> Float[Array, "*n"]: ...
def ordered(v: Int[Array, ""], z: Float[Array, "*n"]) -> Float[Array, "*n"]: ...
def longer(x: Float[Array, "n m"]) -> Float[Array, "n+1 2*m"]: ...
def shorter(x: Float[Array, "n"]) -> Float[Array, "n-1"]: ...
def fixed(x: Float[Array, "..."]) -> Int8[Array, "3 4"]: ...
def rest(x: Float[Array, "... 3"]) -> Float[Array, "..."]: ...
def batched(x: Float[Array, "*batch n"], y: Float[Array, "n"]) -> Float[Array, "*batch"]: ...
def two(x: Float[Array, "n"], y: Int[Array, "m"]) -> tuple[Int[Array, "m"], Float[Array, "n"]]: ...
def nested(x: Float[Array, "n"]) -> tuple[tuple[Float[Array, "n"]], Bool[Array, ""]]: ...
def broadcast(x: Float[Array, "n"], y: Float[Array, "#n"]) -> Float[Array, "n"]: ...
def anything(x: Shaped[Array, "_ n"]) -> Shaped[Array, "n"]: ...
def unbound(x) -> Float[Array, ""]: ...
def whole(x) -> Int[Array, ""]: ...
def documented(x: Float[Array, "rows=3 cols"]) -> Float[Array, "cols"]: ...
def pair(p: tuple[Float[Array, "n"], Float[Array, "m"]]) -> Float[Array, "n m"]: ...
def inexact(x: Num[Array, "n"], y: Num[Array, "n"]) -> Inexact[Array, "n"]: ...
def text(x: "Float[Array, 'n']") -> "Float[Array, 'n n']": ...


FITTING = [
    (same, [struct((2, 3))], struct((2, 3))),
    (same, [struct((), "bfloat16")], struct((), "bfloat16")),
    (ordered, [struct((), "int32"), struct((4, 5))], struct((4, 5))),
    (longer, [struct((3, 4))], struct((4, 8))),
    (shorter, [struct((3,))], struct((2,))),
    (fixed, [struct((7, 8))], struct((3, 4), "int8")),
    (rest, [struct((2, 5, 3))], struct((2, 5))),
    (batched, [struct((2, 6, 3)), struct((3,))], struct((2, 6))),
    (batched, [struct((3,)), struct((3,))], struct(())),
    (two, [struct((3,)), struct((2,), "int32")], (struct((2,), "int32"), struct((3,)))),
    (nested, [struct((3,))], ((struct((3,)),), struct((), "bool"))),
    (broadcast, [struct((3,)), struct((1,))], struct((3,))),
    (broadcast, [struct((3,)), struct((3,))], struct((3,))),
    (anything, [struct((9, 2), "complex64")], struct((2,), "complex64")),
    (unbound, [struct((3,), "int32")], struct(())),
    (whole, [struct((3,))], struct((), "int32")),
    (documented, [struct((3, 5))], struct((5,))),
    (pair, [(struct((3,)), struct((4,)))], struct((3, 4))),
    (inexact, [struct((3,), "int32"), struct((3,), "float16")], struct((3,), "float16")),
    (text, [struct((3,))], struct((3, 3))),
]


@pytest.mark.parametrize(("function", "args", "result"), FITTING)
def test_result_follows_from_the_annotations(function, args, result):
    assert annotated_result(function)(*args) == result


NOT_FITTING = [
    (same, [struct((3,), "int32")], "x has dtype int32, expected Float."),
    (batched, [struct((2, 3)), struct((4,))], "n is 3 in x, but 4 in y."),
    (longer, [struct((3,))], "x has shape (3,), expected 2 dimensions for 'n m'"),
    (rest, [struct((2, 5, 4))], "x has a dimension of size 4, expected 3."),
    (rest, [struct(())], "has shape (), expected at least 1 dimensions for '... 3'"),
    (documented, [struct((4, 5))], "x has a dimension of size 4, expected 3."),
]


@pytest.mark.parametrize(("function", "args", "words"), NOT_FITTING)
def test_error_names_arguments_that_do_not_fit(function, args, words):
    with pytest.raises(ValueError, match=r"^cannot determine the result of") as caught:
        annotated_result(function)(*args)
    assert words in str(caught.value)
    assert f"of {function.__name__}(" in str(caught.value)


def test_error_about_undetermined_dimensions_has_advice():
    def unknown(x) -> Float[Array, "n"]: ...
    def several(x) -> Float[Array, "*n"]: ...
    def called(x: Float[Array, "n"]) -> Float[Array, "n*len(n)"]: ...
    def contradicting(x: Float[Array, "n n+1"]) -> Float[Array, "n"]: ...
    def key(x) -> Key[Array, ""]: ...

    for function, args, words in (
        (unknown, [struct((3,))], "no argument determines 'n'. Annotate the argument that does"),
        (several, [struct((3,))], "no argument determines '*n'"),
        (called, [struct((3,))], "'n*len(n)' is not a dimension"),
        (contradicting, [struct((3, 3))], "x has a dimension of size 3, expected n+1 = 4"),
        (key, [struct(())], "Key is not an array of numbers"),
    ):
        with pytest.raises(ValueError) as caught:
            annotated_result(function)(*args)
        assert words in str(caught.value)


def test_other_annotations_declare_nothing():
    def plain(x) -> float: ...
    def listed(x) -> list[Float[Array, "n"]]: ...
    def any_length(x) -> tuple[Float[Array, "n"], ...]: ...

    for function in (plain, listed, any_length, lambda x: x):
        assert annotated_result(function) is None
        with pytest.raises(ValueError, match="or write a return annotation"):
            jaxcb.pure(function)


def test_annotation_with_an_unknown_name_is_a_clear_error():
    def broken(x) -> "Floaty[Array, 'n']": ...

    with pytest.raises(ValueError, match=r"annotations of broken: NameError.* or pass result="):
        jaxcb.pure(broken)


def test_no_result_is_annotated_as_none():
    seen = []

    @jaxcb.io
    def log(x) -> None:
        seen.append(float(x))

    assert jax.jit(log)(2.0) is None
    jax.effects_barrier()
    assert seen == [2.0]


def test_annotations_are_enough_to_register_a_bessel_function():
    @jaxcb.pure
    def bessel(v: Int[Array, ""], z: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return scipy.special.jv(v, z)

    z = np.linspace(0, 5, 6, dtype=np.float32).reshape(2, 3)
    expected = scipy.special.jv(1, z)
    for f in (
        bessel,
        jax.jit(bessel),
        jax.vmap(bessel, (None, 0)),
        jax.jit(jax.vmap(bessel, (None, 1), 1)),
    ):
        np.testing.assert_allclose(f(1, z), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="v has dtype float32, expected Int"):
        bessel(1.5, z)


def test_result_argument_overrides_the_annotation():
    @jaxcb.pure(result=struct((2,)))
    def f(x: Float[Array, ""]) -> Float[Array, "3"]:
        return np.full(2, x, np.float32)

    assert f(1.0).shape == (2,)


def test_rerun_function_with_equal_annotations_is_the_same_interface(notebook):
    notebook.names |= {"Float": Float, "Array": Array}
    cell = '@jaxcb.pure\ndef again(x: Float[Array, "n"]) -> Float[Array, "n"]:\n    return x + {}'
    notebook.run(cell.format(1), "cell")
    f = jax.jit(notebook.names["again"])
    x = np.zeros(2, np.float32)
    assert f(x)[0] == 1
    notebook.run(cell.format(2), "cell")
    assert f(x)[0] == 2  # without compiling: programs call the new body


@given(data=st.data(), rank=st.integers(0, 3))
def test_result_has_the_named_dimensions_of_the_arguments(data, rank):
    names = data.draw(st.permutations(["a", "b", "c"]))[:rank]
    sizes = {name: data.draw(st.integers(0, 4)) for name in names}
    order = data.draw(st.permutations(names))
    dtype = data.draw(st.sampled_from(FLOATS))

    def f(x): ...

    f.__annotations__ = {
        "x": Float[Array, " ".join(names)],
        "return": Float[Array, " ".join(f"{name}+{k}" for k, name in enumerate(order))],
    }
    found = annotated_result(f)(struct(tuple(sizes[name] for name in names), dtype))
    assert found == struct(tuple(sizes[name] + k for k, name in enumerate(order)), dtype)


def test_result_may_be_a_single_dtype_or_complex_like_the_argument():
    def f(x: Complex[Array, "n"]) -> Float32[Array, "n"]: ...
    def g(x: Complex[Array, "n"]) -> Complex[Array, "n"]: ...

    x = struct((3,), "complex64")
    assert annotated_result(f)(x) == struct((3,), "float32")
    assert annotated_result(g)(x) == x
