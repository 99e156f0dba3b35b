"""Invalid declarations raise a one-paragraph error with advice, before any call."""

import re
from types import SimpleNamespace as Declared

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._messages import message_of

X = np.ones(3, np.float32)


class Box:
    pass


SHAPES = {
    "negative": (-1,),
    "negative in numpy's integers": (2, np.int64(-3)),
    "not whole": (1.5,),
    "whole, but floating": (2.0,),
    "text": ("n",),
    "boolean": (True,),
    "None": (None,),
}
DTYPES = {
    "object": object,
    "text": "U3",
    "dates": "M8[s]",
    "unknown": "floaty",
    "named fields": [("x", "f4")],
    "long double": np.longdouble,
    "void": "V4",
}
NOT_EVALUATED = {
    "unknown name": ("z", "NameError: name 'z' is not defined. Use the names of its parameters"),
    "unknown attribute": ("x.nothing", "AttributeError"),
    "out of range": ("x.shape[9]", "IndexError: tuple index out of range"),
    "by zero": ("x.shape[0] // 0", "ZeroDivisionError"),
    "values": ("x[x > 0]", "NonConcreteBooleanIndexError"),
    "an element by value": ("x[x]", "TypeError: Indexer must have integer or boolean type"),
    "arithmetic": ("x + 'a'", "TypeError: unsupported operand"),
}


def refused(result, *args, error=ValueError):
    """Return the message for a function with this result, called eagerly, jitted and under vmap."""
    seen = []

    def oracle(x=None):
        seen.append(x)
        return x

    messages = set()
    for transform in (lambda f: f, jax.jit, jax.vmap):
        with pytest.raises(error) as caught:
            f = transform(jaxcb.pure(oracle, result=result))
            f(*(args or (X,)))
        # Under vmap the argument is a batch element of X. Functions are shown with their address.
        message = message_of(caught.value).replace("32[]", "32[3]").replace("bool[]", "bool[3]")
        messages.add(re.sub(r"0x[0-9a-f]+", "", message))
    assert seen == []
    (message,) = messages
    return message


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shape_that_is_not_made_of_non_negative_integers_is_refused(shape):
    message = refused(Declared(shape=shape, dtype=np.float32))
    assert message.startswith(f"cannot use the shape {shape!r} in result=")
    assert "must be non-negative integers" in message


def test_expression_for_a_negative_dimension_is_refused():
    message = refused("{'y': jax.ShapeDtypeStruct((x.dtype.itemsize - 9,), x.dtype)}")
    assert message.startswith("cannot use the shape (-5,) in result=")


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_dtype_without_jax_arrays_is_refused(dtype):
    message = refused({"y": Declared(shape=(3,), dtype=dtype)})
    assert message.startswith("cannot use the dtype ") and "JAX has no arrays of it" in message


def test_error_about_a_key_says_what_to_declare_instead():
    message = refused(jax.eval_shape(lambda: jax.random.key(0)), error=TypeError)
    assert "cannot return key<fry> from a host function" in message
    assert "jax.random.wrap_key_data" in message


@pytest.mark.parametrize(
    "result",
    [
        3,
        "3",
        [1, 2],
        object(),
        Box,
        str,
        np.floating,
        "lambda x: x",
        lambda x: 3,
        (jax.ShapeDtypeStruct((), np.float32), 3),
        Declared(shape=3, dtype="float32"),
    ],
    ids=lambda result: type(result).__name__,
)
def test_declaration_without_shape_and_dtype_is_refused(result):
    message = refused(result)
    assert message.startswith("cannot use ") or "raised TypeError" in message
    if message.startswith("cannot use "):
        assert "has no shape and dtype. Use an array, the name of a parameter" in message


@pytest.mark.parametrize(
    ("result", "advice"),
    [
        ("(50, 2)", "a shape and a dtype: jax.ShapeDtypeStruct((50, 2), np.float32)."),
        ((50, 2), "a shape and a dtype: jax.ShapeDtypeStruct((50, 2), np.float32)."),
        ("(len('ab'), 2)", "a shape and a dtype: jax.ShapeDtypeStruct((2, 2), np.float32)."),
        ("{'y': (5,)}", "a shape and a dtype: jax.ShapeDtypeStruct((5,), np.float32)."),
        (
            ("x.shape[:1]", "x"),
            'Write the whole structure as one string: result="(x.shape[:1], ...)".',
        ),
    ],
    ids=["text", "sizes", "computed", "a shape", "expressions in a structure"],
)
def test_error_suggests_the_declaration_that_was_meant(result, advice):
    assert refused(result).endswith(advice)


@pytest.mark.parametrize(("expression", "words"), NOT_EVALUATED.values(), ids=NOT_EVALUATED)
def test_error_of_an_expression_that_raises_quotes_it_and_its_exception(expression, words):
    message = refused(expression) if expression != "x.shape[0] // 0" else None
    if message is None:
        with pytest.raises(ValueError) as caught:
            jaxcb.pure(lambda oracle: oracle, result="oracle.shape[0] // 0")(X)
        message = message_of(caught.value)
    else:
        assert message.startswith(
            f"cannot evaluate result={expression!r} of oracle(x=float32[3]): "
        )
    assert words in message


def test_error_of_a_result_function_that_raises_names_it_and_its_arguments():
    message = refused(lambda x: x.shape[9])
    assert message.startswith(
        "cannot determine the result of oracle(float32[3]): result=<lambda> raised "
    )
    assert "raised IndexError: tuple index out of range" in message
    assert "raised TypeError" in refused(lambda: 3)

    with pytest.raises(ValueError) as caught:
        jaxcb.pure(lambda oracle: 1, result=lambda oracle: oracle.shape[9])(X)
    assert isinstance(caught.value.__cause__, IndexError)


def test_declared_64_bits_are_refused_without_x64():
    message = refused(jax.ShapeDtypeStruct((3,), np.int64))
    assert "cannot return int64 while jax_enable_x64 is off" in message
    assert "Declare int32, or call jax.config.update('jax_enable_x64', True)" in message


def test_result_lambda_with_another_default_is_another_interface():
    """Programs of the first lambda keep their shape and never call the second body."""
    names = {"np": np}
    programs = []
    for n in (2, 3):
        exec(f"def oracle(x): return np.ones({n}, np.float32)", names)
        result = lambda x, n=n: jax.ShapeDtypeStruct((n,), np.float32)  # noqa: E731
        programs.append(jax.jit(jaxcb.pure(names["oracle"], result=result)))
        assert programs[-1](0.0).shape == (n,)
    assert programs[0](0.0).shape == (2,)


# infer


def raising(x):
    raise RuntimeError("no luck")


INFERRED = {
    "raises": (raising, "run on zeros it raised RuntimeError: no luck. Declare it: result=jax.S"),
    "None": (lambda x: None, "run on zeros it returned None. Return the computed arrays"),
    "objects": (
        lambda x: np.array([1, None]),
        "an array object[2] ([1, None]), which is not an array",
    ),
    "text": (lambda x: "text", "it returned 'text', which is not an array of a JAX dtype"),
    "dates": (lambda x: np.zeros(1, "M8[s]"), "an array datetime64[s][1] ("),
    "named fields": (lambda x: np.zeros(1, [("a", "f4")]), "an array [('a', '<f4')][1] ([(0.0,)])"),
    "masked": (
        lambda x: np.ma.masked_array([1.0]),
        "returned a masked array float64[1], which is not",
    ),
    "generator": (lambda x: (i for i in ()), "returned <generator object"),
    "huge integer": (lambda x: 2**70, "returned 1180591620717411303424, which is not"),
    "key": (lambda x: jax.random.key(0), "returned Array((), dtype=key<fry>)"),
    "long double": (lambda x: np.longdouble(3), "which is not an array of a JAX dtype"),
    "in a dict": (lambda x: {"a": 1.0, "b": {1, 2}}, "it returned {1, 2}, which is not an array"),
    "unsorted keys": (lambda x: {1: 1.0, "a": 2.0}, "which JAX cannot flatten (ValueError"),
    "two parameters": (lambda x, y: x, "it raised TypeError"),
}


@pytest.mark.parametrize(("function", "words"), INFERRED.values(), ids=INFERRED)
@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"]
)
def test_error_of_inference_says_what_was_returned_and_what_to_do(function, words, transform):
    def oracle(*args):
        return function(*args)

    with pytest.raises(ValueError) as caught:
        transform(jaxcb.pure(oracle, result="infer"))(X)
    message = message_of(caught.value, words)
    assert message.startswith("cannot infer the result of oracle: ")


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"]
)
def test_result_of_a_function_that_uses_jax_is_inferred(transform):
    """The function runs on zeros outside of the program that is being traced."""
    oracle = jaxcb.pure(lambda x: {"sum": jnp.sum(x), "half": x / 2}, result="infer")
    got = transform(oracle)(X[:, None])
    np.testing.assert_array_equal(got["half"], X[:, None] / 2)
    assert np.sum(got["sum"]) == 3


def test_result_that_does_not_fit_the_inferred_dtype_is_an_error_of_its_call():
    oracle = jaxcb.pure(lambda x: {"oracle": 2 ** int(x)}, result="infer")
    assert oracle(4)["oracle"] == 16
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        oracle(40)
    message_of(caught.value, "['oracle'] returned 1099511627776 (int64)", "declared int32")


@pytest.mark.parametrize("result", [(), "()", [], {}, None, "None", ({}, [])], ids=repr)
def test_pure_callback_without_any_result_is_refused(result):
    def oracle(x):
        return x

    with pytest.raises(ValueError, match="cannot register oracle") as caught:
        jaxcb.pure(oracle, result=result)
    words = str(caught.value)
    assert "returns nothing" in words and "Register it as io" in words
    assert ("a scalar is" in words) == (result in ((), "()"))


def test_string_argument_is_not_mistaken_for_a_declaration():
    def oracle(z):
        return z

    with pytest.raises(ValueError, match="cannot use 'abc'") as caught:
        jaxcb.pure(oracle, result="z")("abc")
    words = message_of(caught.value, "in result='z'", "jax.ShapeDtypeStruct(")
    assert "Write one string" not in words


def test_result_function_may_be_a_pytree_without_leaves():
    like = jax.tree_util.Partial(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert jaxcb.pure(lambda x: x, result=like)(X).shape == X.shape
    with pytest.raises(ValueError, match="cannot evaluate result"):
        jaxcb.pure(lambda x: x, result="{[]: 1}")(X)


@pytest.mark.parametrize(
    ("result", "shape"), [("(2,) + x.shape", (2, 3, 4)), ("x.shape + (2,)", (3, 4, 2))]
)
def test_result_expression_can_prepend_and_append_axes(result, shape):
    f = jaxcb.pure(lambda x: np.zeros(shape, x.dtype), result=result)
    y = f(np.ones((3, 4), np.float16))
    assert (y.shape, y.dtype) == (shape, np.float16)


ELEMENTS = {
    "x[0]": lambda x: x[0],
    "x[-1, 1:]": lambda x: x[-1, 1:],
    "x[..., None, 0]": lambda x: x[..., None, 0],
    "(x[0][1], [x[:0], x])": lambda x: (x[0][1], [x[:0], x]),
    "(*x,)": lambda x: (*x,),
}


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.complex64])
@pytest.mark.parametrize(("expression", "function"), ELEMENTS.items(), ids=ELEMENTS)
def test_index_in_an_expression_declares_what_numpy_would_select(expression, function, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for result in (expression, function):
        got = jax.jit(jaxcb.pure(function, result=result))(x)
        jax.tree.map(np.testing.assert_array_equal, got, function(x))
        assert {leaf.dtype for leaf in jax.tree.leaves(got)} == {np.dtype(dtype)}


def test_index_that_numpy_refuses_is_refused_with_its_reason():
    with pytest.raises(ValueError, match="IndexError: index 9 is out of bounds for axis 0"):
        jaxcb.pure(lambda x: x, result="x[9]")(X)
    with pytest.raises(ValueError, match="too many indices"):
        jax.vmap(jaxcb.pure(lambda x: x, result="x[0]"))(X)


def test_element_of_a_leaf_of_a_pytree_is_a_scalar_also_under_vmap():
    f = jaxcb.pure(lambda params: params["w"][0] * 2, result="params['w'][0]")
    got = jax.vmap(f)({"w": np.arange(6, dtype=np.float32).reshape(3, 2)})
    np.testing.assert_array_equal(got, [0, 4, 8])


SCALARS = (float, int, bool, complex, np.float16, np.int8, np.bool_, jnp.float32, jnp.bfloat16)


@pytest.mark.long
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
def test_scalar_type_declares_the_dtype_that_jax_gives_its_numbers(kind, x64):
    expected = jnp.dtype(kind) if kind not in SCALARS[:4] else None
    with jax.enable_x64(x64) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(x64):
        expected = expected or jnp.array(kind(1)).dtype
        for result in (kind, "kind"):
            exec("def host(x): return one", names := {"kind": kind, "one": np.ones((), expected)})
            got = jax.jit(jaxcb.pure(names["host"], result=result))(np.float32(0))
            assert (got.shape, got.dtype, got == 1) == ((), expected, True)


def test_scalar_types_are_leaves_of_structures():
    f = jaxcb.pure(lambda theta: (1.5, theta), result="(float, theta)")
    one, theta = jax.vmap(f)(np.ones((4, 3), np.float16))
    assert (one.shape, one.dtype, theta.dtype) == ((4,), np.float32, np.float16)
    g = jaxcb.io(lambda: {"n": 3, "z": 1j}, result={"n": int, "z": np.complex64})
    assert jax.tree.map(complex, jax.jit(g)()) == {"n": 3, "z": 1j}


def test_scalar_type_of_64_bits_is_refused_without_x64():
    assert "cannot return float64 while jax_enable_x64 is off" in refused(np.float64)


STRUCT_OUTSIDE = jax.ShapeDtypeStruct((2,), np.float32)
ARRAY_OUTSIDE = np.zeros(4, np.float32)


def test_array_outside_of_the_function_is_no_declaration_but_a_struct_is():
    def twice(e):
        return np.stack([e, e])

    wrong = jaxcb.pure(twice, result="ARRAY_OUTSIDE")
    words = r"result='ARRAY_OUTSIDE' of twice is an array outside of it, .* parameters \(e\)\. Use"
    with pytest.raises(ValueError, match=words):
        wrong(np.float32(1))
    assert jaxcb.pure(twice, result="STRUCT_OUTSIDE")(np.float32(1)).tolist() == [1, 1]


class _Untouched:
    """A default whose every use fails."""

    def __repr__(self):
        raise RuntimeError("printed")

    def __iter__(self):
        raise RuntimeError("walked")

    __hash__ = None


DEFAULTS = {"object": _Untouched(), "in a list": [_Untouched()], "nested": {"a": (_Untouched(),)}}


@pytest.mark.kept
@pytest.mark.parametrize("default", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize("result", ["x", " x", "(x, x.shape)[0]", "[y for y in (x,)][0]"])
@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io])
def test_a_default_that_the_expression_does_not_name_is_not_looked_at(register, result, default):
    def double(x, table=default, *, other=default):
        return 2 * x

    callback = register(double, result=result)
    assert callback(1.5) == 3
    assert jax.jit(callback)(1.5) == 3
    assert jax.vmap(callback)(jnp.ones(2)).tolist() == [2, 2]


@pytest.mark.kept
def test_a_default_is_not_looked_at_for_the_error_of_an_expression():
    callback = jaxcb.pure(lambda x, table=DEFAULTS["in a list"]: x, result="y")
    with pytest.raises(ValueError, match=r"of <lambda>\(x=float32\[\], table=\[.*name 'y' is not"):
        callback(1.5)


@pytest.mark.kept
def test_a_default_that_the_expression_names_is_used():
    row = np.ones((2, 3), np.float32)
    callback = jaxcb.pure(lambda x, table=row: x + table[0], result="table.shape[1:]")
    assert callback(np.float32(1)).tolist() == [2, 2, 2]


@pytest.mark.kept
@pytest.mark.parametrize("result", ["(50,)", " 50", "[3, 4]", (50,), [3, 4], 50])
@pytest.mark.parametrize("flavor", ["pure", "io", "buffer"])
def test_a_shape_without_a_dtype_is_refused_when_it_is_registered(flavor, result):
    with pytest.raises(ValueError, match="has no shape and dtype") as caught:
        getattr(jaxcb, flavor)(lambda *_: None, result=result)
    sizes = str(result).strip().strip("()[],")
    wanted = f"jax.ShapeDtypeStruct(({sizes}{'' if ',' in sizes else ','}), np.float32)."
    assert str(caught.value).endswith(wanted)


STRUCT = jax.ShapeDtypeStruct((2,), np.float32)


@pytest.mark.kept
@pytest.mark.parametrize(
    ("result", "wrong", "instead"),
    [
        ("(x, (7,))", "(7,)", "jax.ShapeDtypeStruct((7,), np.float32)."),
        ("{'a': (7, 2)}", "(7, 2)", "jax.ShapeDtypeStruct((7, 2), np.float32)."),
        ("[x, [3, 4]]", "[3, 4]", "jax.ShapeDtypeStruct((3, 4), np.float32)."),
        ("(x, 3)", "3", "jax.ShapeDtypeStruct((3,), np.float32)."),
        ("(x.T, float, {'a': [(7,), -1.5]})", "(7,)", "jax.ShapeDtypeStruct((7,), np.float32)."),
        ("{'b': -1.5}", "-1.5", "jax.ShapeDtypeStruct((3,), np.float32)."),
        ("(x, 'x')", "'x'", "jax.ShapeDtypeStruct((3,), np.float32)."),
        ((STRUCT, (7, 2)), "(7, 2)", "jax.ShapeDtypeStruct((7, 2), np.float32)."),
        ({"a": [STRUCT, 7]}, "7", "jax.ShapeDtypeStruct((7,), np.float32)."),
        ((STRUCT, "x"), "'x'", 'Write the whole structure as one string: result="(x, ...)".'),
        ((float, 2.5), "2.5", "jax.ShapeDtypeStruct((3,), np.float32)."),
    ],
)
@pytest.mark.parametrize("flavor", ["pure", "io", "buffer"])
def test_a_part_that_never_has_a_dtype_is_refused_when_it_is_registered(
    flavor, result, wrong, instead
):
    with pytest.raises(ValueError, match="has no shape and dtype") as caught:
        function = (lambda out, x: None) if flavor == "buffer" else lambda x: None
        getattr(jaxcb, flavor)(function, result=result)
    assert f" of <lambda>: {wrong} has no shape and dtype. " in str(caught.value)
    assert str(caught.value).endswith(instead)


@pytest.mark.kept
@pytest.mark.parametrize("text", ["f32[50", "x x", "x +", "", "y = x", "x; x", "\0"])
@pytest.mark.parametrize("flavor", ["pure", "io", "buffer"])
def test_a_text_that_is_no_expression_is_refused_when_it_is_registered(flavor, text):
    with pytest.raises(ValueError, match="cannot use result=") as caught:
        function = (lambda out, x: None) if flavor == "buffer" else lambda x: None
        getattr(jaxcb, flavor)(function, result=text)
    assert f"result={text!r} of <lambda>: SyntaxError: " in str(caught.value)
    assert 'such as "x", or jax.ShapeDtypeStruct' in str(caught.value)


@pytest.mark.kept
@pytest.mark.parametrize(
    "result",
    [
        "(x, x.shape + (3,))", "(x, (3,) + x.shape)",
        "{'a': jax.ShapeDtypeStruct((7,), 'int32')}",
        "(x, ())", "(x, None)", "(n, 2)", "(x.shape[0], 2)", "(*x.shape, 3)",
        "[x if x.ndim else 3]", "(float, np.int32)", (STRUCT, ()),
        (np.float64(3), np.ones(2, np.float32)), {"a": float, "b": None}, "{3: x}",
    ],
)  # fmt: skip
def test_a_structure_that_may_have_dtypes_is_registered(result):
    jaxcb.pure(lambda x: None, result=result)


@pytest.mark.kept
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_inference_says_on_what_the_function_was_run(transform):
    def pick(table, n):
        return table[2 + int(n[0])] + [1.0][5]

    callback = jaxcb.pure(pick, result="infer")
    words = r"run on zeros it raised IndexError: list.* run as pick\(float32\[4\], int32\[3\]\)\."
    with pytest.raises(ValueError, match=words) as caught:
        transform(callback)(jnp.ones(4), jnp.arange(3))
    (note,) = caught.value.__cause__.__notes__
    assert note == "raised when result='infer' ran pick(float32[4], int32[3]) on zeros"
