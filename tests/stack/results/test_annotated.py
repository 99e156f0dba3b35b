"""Annotations in programs: the arguments determine dtypes of families and dimensions."""

import builtins
import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jaxtyping import (
    Array,
    Bool,
    Complex,
    Float,
    Inexact,
    Int,
    Int8,
    Integer,
    Key,
    Num,
    Shaped,
    UInt,
)

import jupyter_jaxcb as jaxcb

from ._messages import message_of

ELEMENTS = 4
FAMILIES = [
    (Float, "float32"), (Float, "float16"), (Float, "bfloat16"), (Float, "float8_e5m2"),
    (Int, "int32"), (Int, "int8"), (UInt, "uint16"), (Integer, "uint8"), (Integer, "int16"),
    (Bool, "bool"), (Complex, "complex64"), (Inexact, "complex64"), (Inexact, "float16"),
    (Num, "int8"), (Num, "complex64"), (Num, "bfloat16"), (Shaped, "bool"), (Shaped, "uint32"),
]  # fmt: skip
WIDE = [(Float, "float64"), (Int, "int64"), (UInt, "uint64"), (Complex, "complex128")]


def numbers(shape, name):
    return (np.arange(np.prod(shape)).reshape(shape) % 2).astype(jnp.dtype(name))


def assert_same(got, wanted):
    got = np.asarray(got)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert got.tobytes() == wanted.tobytes()


def everywhere(oracle, host, *args):
    """Compare with NumPy: called eagerly, compiled, under vmap, and in a scan."""
    wanted = host(*args)
    for f in (oracle, jax.jit(oracle)):
        jax.tree.map(assert_same, f(*args), wanted)
    stacked = [np.stack([x, x[::-1] if x.ndim else x, x, x]) for x in args]
    each = [host(*(x[element] for x in stacked)) for element in range(ELEMENTS)]
    wanted = jax.tree.map(lambda *elements: np.stack(elements), *each)
    jax.tree.map(assert_same, jax.jit(jax.vmap(oracle))(*stacked), wanted)
    _, got = jax.lax.scan(lambda carry, xs: (carry, oracle(*xs)), 0, tuple(stacked))
    jax.tree.map(assert_same, got, wanted)


@pytest.mark.long
@pytest.mark.parametrize(("family", "name"), FAMILIES, ids=str)
def test_family_has_the_dtype_of_the_argument(family, name):
    def host(x):
        return np.ascontiguousarray(np.concatenate([x, x[:1]]).T)

    @jaxcb.pure
    def oracle(x: family[Array, "n m"]) -> family[Array, "m n+1"]:
        return host(x)

    everywhere(oracle, host, numbers((2, 3), name))


@pytest.mark.parametrize(("family", "name"), WIDE, ids=str)
def test_family_is_as_wide_as_the_argument_is_in_jax(family, name):
    @jaxcb.pure
    def oracle(x: family[Array, "*batch"]) -> family[Array, "*batch"]:
        return x

    x = numbers((2, 3), name)
    narrow = x.astype(jax.dtypes.canonicalize_dtype(x.dtype))
    assert narrow.dtype != x.dtype
    assert_same(jax.jit(oracle)(x), narrow)
    with jax.enable_x64(True):
        everywhere(oracle, lambda x: x, x)


def summed(x, w):
    return np.asarray((x * w).sum(-1), np.result_type(x, w)), np.int8([x.shape[-1], 7])


def test_batch_dimensions_and_several_results_are_determined_together():
    @jaxcb.pure
    def oracle(
        x: Float[Array, "*batch n"], w: Float[Array, "n"]
    ) -> tuple[Float[Array, "*batch"], Int8[Array, "2"]]:
        return summed(x, w)

    for batch in ((), (2,), (2, 3), (0,)):
        everywhere(oracle, summed, numbers((*batch, 5), "float32"), numbers((5,), "float32"))
    x, w = numbers((2, 5), "float16"), numbers((5,), "float32")
    got = jax.jit(oracle)(x, w)[0]
    assert got.dtype == np.float32  # NumPy and JAX both promote to it


def test_ellipsis_stands_for_the_dimensions_of_the_argument():
    @jaxcb.pure
    def oracle(x: Num[Array, "... 3"]) -> Num[Array, "..."]:
        return x[..., 0]

    for lead in ((), (2,), (2, 4)):
        everywhere(oracle, lambda x: np.array(x[..., 0]), numbers((*lead, 3), "int32"))


def test_dimensions_with_an_underscore_may_differ():
    @jaxcb.pure
    def oracle(x: Float[Array, "_n _n k"], y: Float[Array, "*_lead k"]) -> Float[Array, "k"]:
        return np.ones(x.shape[-1], np.float32)

    assert_same(oracle(struct(2, 3, 4), struct(9, 4)), np.ones(4, np.float32))
    refused(oracle, "k is 4 in x, but 5 in y.", struct(2, 3, 4), struct(5))


def test_broadcast_dimension_is_1_only_if_it_is_1_in_all_arguments():
    @jaxcb.pure
    def oracle(x: Float[Array, "#n"], y: Float[Array, "#n"]) -> Float[Array, "n"]:
        return x + y

    for sizes in ((3, 1), (1, 3), (3, 3), (1, 1)):
        x, y = (np.ones(n, np.float32) for n in sizes)
        everywhere(oracle, np.add, x, y)


def test_broadcast_groups_of_dimensions_are_broadcast():
    @jaxcb.pure
    def oracle(x: Float[Array, "#*n"], y: Float[Array, "#*n"]) -> Float[Array, "*n"]:
        return x + y

    for shapes in (((1, 3), (2, 3)), ((2, 3), (2, 1)), ((2, 1), (1, 3)), ((), ())):
        x, y = (np.ones(shape, np.float32) for shape in shapes)
        assert_same(oracle(x, y), x + y)


def test_key_may_be_an_argument_but_not_a_result():
    @jaxcb.pure
    def oracle(key: Key[Array, ""], x: Float[Array, "n"]) -> Float[Array, "n"]:
        return x + (key.dtype == np.uint32)

    @jaxcb.pure
    def loose(key, x: Float[Array, "n"]) -> Float[Array, "n"]:
        return x

    key, x = jax.random.key(0), np.ones(3, np.float32)
    assert_same(jax.jit(oracle)(key, x), x + 1)
    assert_same(loose(key, x), x)
    refused(oracle, "key has dtype float32, expected Key. Convert key", x[0], x)
    refused(oracle, "x has dtype key<fry>, expected Float", key, jax.random.split(key))

    @jaxcb.pure
    def oracle(x) -> Key[Array, ""]: ...

    refused(
        oracle, "Key is not an array of numbers. Annotate the key's data, UInt32[Array, '2']", x
    )


def refused(oracle, words, *args):
    for f in (oracle, jax.jit(oracle)):
        with pytest.raises(ValueError) as caught:
            f(*args)
        message = message_of(caught.value, words)
        assert message.startswith("cannot determine the result of oracle(")


def struct(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


NOT_BOUND = {
    "unknown": (None, "n", [3], "no argument determines 'n'. Annotate the argument that does"),
    "unknown in arithmetic": ("m", "n+m", [3], "no argument determines 'n'"),
    "unknown group": ("m", "*n", [3], "no argument determines '*n'"),
    "unchecked": ("_", "_", [3], "no argument determines '_'"),
    "contradicting": ("n n", "n", [3, 4], "n is 3 in x, but 4 in x. Pass arguments that agree"),
    "contradicting arithmetic": (
        "n n+1",
        "n",
        [3, 3],
        "x has a dimension of size 3, expected n+1 = 4.",
    ),
    "contradicting number": ("3", "3", [4], "x has a dimension of size 4, expected 3. Reshape x"),
    "other rank": (
        "n m",
        "n",
        [3],
        "has shape (3,), expected 2 dimensions for 'n m'. Reshape x, or",
    ),
    "too small a rank": (
        "a b *n",
        "a",
        [3],
        "has shape (3,), expected at least 2 dimensions for 'a b *n'",
    ),
    "call": ("n", "len(n)", [3], "'len(n)' is not a dimension. Write a name, an integer, or"),
    "no Python": ("n", "n+", [3], "'n+' is not a dimension"),
    "negative": ("n", "n-5", [3], "'n-5' is -2 with n=3, which is not a valid dimension. Write"),
    "not whole": ("n", "n/2", [3], "'n/2' is 1.5 with n=3, which is not a valid dimension"),
    "whole, but divided": ("n", "n/3", [3], "(n//2, not n/2)"),
    "by zero": ("n", "3//n", [0], "cannot compute '3//n' with n=0: ZeroDivisionError"),
}


@pytest.mark.parametrize(
    ("argument", "result", "shape", "words"), NOT_BOUND.values(), ids=NOT_BOUND
)
def test_error_names_dimensions_that_cannot_be_determined(
    argument, result, shape, words, monkeypatch
):
    monkeypatch.setattr(builtins, "_", 4, raising=False)  # as in an interactive session

    def oracle(x): ...

    oracle.__annotations__ = {"return": Float[Array, result]}
    if argument is not None:
        oracle.__annotations__["x"] = Float[Array, argument]
    refused(jaxcb.pure(oracle), words, struct(*shape))


def test_error_about_contradicting_dimensions_names_both_arguments():
    @jaxcb.pure
    def oracle(x: Float[Array, "n"], y: Float[Array, "n"]) -> Float[Array, "n"]: ...

    refused(oracle, "n is 3 in x, but 4 in y.", struct(3), struct(4))

    @jaxcb.pure
    def oracle(x: Float[Array, "*n"], y: Float[Array, "*n"]) -> Float[Array, "*n"]: ...

    refused(oracle, "*n is (3,) in x, but (3, 1) in y. Pass", struct(3), struct(3, 1))

    @jaxcb.pure
    def oracle(x: Float[Array, "#*n"], y: Float[Array, "#*n"]) -> Float[Array, "*n"]: ...

    refused(oracle, "*n is (3,) in x, but (2,) in y. Pass", struct(3), struct(2))

    @jaxcb.pure
    def oracle(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]: ...

    refused(oracle, "'...' is ambiguous: it has different dimensions", struct(3), struct(2))


@pytest.mark.parametrize(
    ("family", "name"),
    [(Float, "int32"), (Int, "uint8"), (UInt, "int8"), (Bool, "int32"), (Complex, "float32"),
     (Inexact, "int32"), (Num, "bool"), (Int8, "int16")],
    ids=str,
)  # fmt: skip
def test_error_names_an_argument_of_another_family(family, name):
    @jaxcb.pure
    def oracle(x: family[Array, "n"]) -> family[Array, "n"]: ...

    words = f"x has dtype {name}, expected {family.__name__}. Convert x, or change its annotation"
    refused(oracle, words, struct(3, dtype=name))


def test_family_whose_width_no_argument_determines_is_refused():
    @jaxcb.pure
    def oracle(x) -> UInt[Array, ""]: ...

    refused(oracle, "no argument is UInt, so its width is unknown. Name the", struct(3))


def test_wrong_number_of_arguments_is_refused():
    @jaxcb.pure
    def oracle(x: Float[Array, "n"]) -> Float[Array, "n"]: ...

    for args in ((), (1.0, 2.0)):
        with pytest.raises(TypeError, match=r"^oracle\(\) (missing|too many)"):
            oracle(*args)


@pytest.mark.parametrize(
    "hint", [float, np.ndarray, jax.Array, "float", list[Float[Array, "n"]], functools.partial],
    ids=str,
)  # fmt: skip
def test_annotation_without_a_shape_is_not_a_declaration(hint):
    def oracle(x): ...

    oracle.__annotations__ = {"return": hint}
    for register in (jaxcb.pure, jaxcb.io):
        with pytest.raises(ValueError) as caught:
            register(oracle)
        message_of(caught.value, "cannot register oracle as a", "without its result. Pass result=")


def test_annotation_with_an_unknown_name_is_refused_at_registration():
    def oracle(x) -> "Floaty[Array, 'n']": ...

    with pytest.raises(ValueError) as caught:
        jaxcb.pure(oracle)
    message_of(caught.value, "cannot read the annotations of oracle: NameError", "or pass result=")


def test_result_that_contradicts_its_annotation_is_refused():
    @jaxcb.pure
    def oracle(x: Float[Array, "n"]) -> tuple[Float[Array, "n"], Int8[Array, "2"]]:
        return x, np.int64([1, 300])

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        oracle(np.ones(3, ml_dtypes.bfloat16))
    message_of(caught.value, "oracle[1] returned 300 (int64), which does not fit the declared")
