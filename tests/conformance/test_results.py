"""What the answer of a host function must be, and what is said when it is not."""

import collections
import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

THREE = jax.ShapeDtypeStruct((3,), np.float32)
SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.float32([1, 2, 3])
eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])


@pytest.fixture
def answering():
    """``f, seen = answering(answer, result)``: a callback whose host function answers `answer`."""

    def make(answer, result, **options):
        seen = []

        def oracle(x):
            seen.append(x)
            return answer

        return functools.partial(jaxcb.pure_callback, oracle, result, **options), seen

    return make


def assert_readable(error):
    """One paragraph that names the host function, and is no longer than one reads."""
    message = str(error)
    assert isinstance(error, (ValueError, TypeError))
    assert "oracle" in message
    assert "\n" not in message.strip()
    assert len(message) < 500
    return message


# Structure

Point = collections.namedtuple("Point", "x y")

WRONG_STRUCTURES = {
    "other keys": ({"vel": 1.0, "acc": 2.0}, {"pos": SCALAR, "vel": SCALAR}, ["acc", "pos"]),
    "missing key": ({"vel": 1.0}, {"pos": SCALAR, "vel": SCALAR}, ["pos"]),
    "tuple for dict": ((1.0, 2.0), {"pos": SCALAR, "vel": SCALAR}, ["pos", "vel"]),
    "dict for list": ({"a": 1.0, "b": 2.0}, [SCALAR, SCALAR], ["'a'"]),
    "too few": ((1.0,), (SCALAR, SCALAR), []),
    "too many": ((1.0, 2.0, 3.0), (SCALAR, SCALAR), []),
    "one for two": (1.0, (SCALAR, SCALAR), []),
    "two for one": ((1.0, 2.0), SCALAR, []),
    "None for one": (None, SCALAR, ["None"]),
    "one inside is None": ((1.0, None), (SCALAR, SCALAR), ["None"]),
    "deeper": ({"a": {"b": 1.0}}, {"a": SCALAR}, ["'a'"]),
    "tuple for namedtuple": ((1.0, 2.0), Point(SCALAR, SCALAR), ["Point"]),
}


@eager_or_jit
@pytest.mark.parametrize(
    ("answer", "result", "words"), WRONG_STRUCTURES.values(), ids=WRONG_STRUCTURES
)
def test_answer_of_another_structure_is_an_error(
    answering, failure, answer, result, words, compiled
):
    """Never permuted in silence; 1 call."""
    f, seen = answering(jax.tree.map(np.float32, answer), result)
    message = assert_readable(failure(compiled(f), X))
    assert [word for word in words if word not in message] == []
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ([1.0, 2.0], (SCALAR, SCALAR)),
        ((1.0, 2.0), [SCALAR, SCALAR]),
        ({"a": [1.0, (2.0,)]}, {"a": (SCALAR, [SCALAR])}),
        ({"b": 2.0, "a": 1.0}, {"a": SCALAR, "b": SCALAR}),
    ],
    ids=["list for tuple", "tuple for list", "inside a dict", "keys in another order"],
)
def test_lists_and_tuples_stand_for_each_other(answering, run, answer, result):
    """Nothing can be permuted by that; the declared structure comes back, 1 call."""
    f, seen = answering(jax.tree.map(np.float32, answer), result)
    got = run(jax.jit(f), X)
    assert jax.tree.structure(got) == jax.tree.structure(result)
    assert jax.tree.leaves(got) == [1, 2]
    assert len(seen) == 1


# Shape

WRONG_SHAPES = {
    "longer": (np.ones(4, np.float32), THREE, ["(4,)", "(3,)"]),
    "scalar for array": (np.float32(1), THREE, ["()", "(3,)"]),
    "array for scalar": (np.ones(1, np.float32), SCALAR, ["(1,)", "()"]),
    "one axis more": (np.ones((1, 3), np.float32), THREE, ["(1, 3)", "(3,)"]),
    "empty": (np.ones(0, np.float32), THREE, ["(0,)", "(3,)"]),
}


@eager_or_jit
@pytest.mark.parametrize(("answer", "result", "words"), WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_answer_of_another_shape_is_an_error(answering, failure, answer, result, words, compiled):
    """Nothing is broadcast, though numpy would; both shapes are said, 1 call."""
    f, seen = answering(answer, result)
    message = assert_readable(failure(compiled(f), X))
    assert [word for word in words if word not in message] == []
    assert len(seen) == 1


def test_error_in_one_leaf_names_its_key(answering, failure):
    """In a structure it is not enough to say that some shape is wrong; 1 call."""
    good, bad = np.ones(3, np.float32), np.ones(4, np.float32)
    f, seen = answering(
        {"good": good, "deep": [good, bad]}, {"good": THREE, "deep": (THREE, THREE)}
    )
    message = assert_readable(failure(jax.jit(f), X))
    assert "deep" in message and "1" in message
    assert "(4,)" in message and "(3,)" in message
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("method", "shape"), [("sequential", (3,)), ("expand_dims", (5, 3)), ("broadcast_all", (5, 3))]
)
def test_shape_expected_under_vmap_is_the_one_the_method_hands_out(
    answering, run, failure, method, shape
):
    """One lane, or the whole batch; the first wrong answer ends it."""
    f, seen = answering(np.ones(shape, np.float32), THREE, vmap_method=method)
    np.testing.assert_array_equal(run(jax.vmap(f), np.ones((5, 2), np.float32)), np.ones((5, 3)))
    assert len(seen) == (5 if method == "sequential" else 1)
    f, seen = answering(np.ones((7, 7), np.float32), THREE, vmap_method=method)
    message = assert_readable(failure(jax.vmap(f), np.ones((5, 2), np.float32)))
    assert "(7, 7)" in message and str(shape) in message
    assert len(seen) == 1


# Numbers

ACCEPTED = {  # declared, answer, what JAX gets
    "float64 for float32": ("float32", np.float64(1 / 3), np.float32(1 / 3)),
    "float64 for float16": ("float16", np.float64(1 / 3), np.float16(1 / 3)),
    "float64 for bfloat16": ("bfloat16", np.float64(1 / 3), ml_dtypes.bfloat16(1 / 3)),
    "float32 for bfloat16": ("bfloat16", np.float32(1 / 3), ml_dtypes.bfloat16(1 / 3)),
    "bfloat16 for float32": ("float32", ml_dtypes.bfloat16(1.5), np.float32(1.5)),
    "float16 for float32": ("float32", np.float16(1 / 3), np.float32(np.float16(1 / 3))),
    "underflow": ("float32", np.float64(1e-300), np.float32(0)),
    "largest that rounds down": ("float32", np.float64(3.4028235e38), np.float32(3.4028235e38)),
    "nan": ("float32", np.float64("nan"), np.float32("nan")),
    "infinite": ("float32", np.float64("inf"), np.float32("inf")),
    "minus infinite": ("float16", np.float32("-inf"), np.float16("-inf")),
    "complex128 for complex64": ("complex64", np.complex128(1 / 3 + 1j), np.complex64(1 / 3 + 1j)),
    "int64 for int32": ("int32", np.int64(2**31 - 1), np.int32(2**31 - 1)),
    "int64 for int8": ("int8", np.int64(-128), np.int8(-128)),
    "int8 for uint8": ("uint8", np.int8(127), np.uint8(127)),
    "uint64 for int32": ("int32", np.uint64(7), np.int32(7)),
    "int8 for int32": ("int32", np.int8(-1), np.int32(-1)),
    "Python float": ("float32", 0.1, np.float32(0.1)),
    "Python int": ("int32", 7, np.int32(7)),
    "Python int for uint8": ("uint8", 255, np.uint8(255)),
    "Python bool": ("bool", True, np.bool_(True)),
    "Python complex": ("complex64", 1 + 2j, np.complex64(1 + 2j)),
}
REFUSED = {  # declared, answer, words of the message
    "int64 for int8": ("int8", np.int64(128), ["128", "int8"]),
    "int64 for int32": ("int32", np.int64(2**40 + 7), ["1099511627783", "int32"]),
    "just too large for int32": ("int32", np.int64(2**31), ["2147483648", "int32"]),
    "negative for uint8": ("uint8", np.int64(-1), ["-1", "uint8"]),
    "negative of the same width": ("uint8", np.int8(-1), ["-1", "uint8"]),
    "too large of the same width": ("int8", np.uint8(200), ["200", "int8"]),
    "negative for a wider unsigned": ("uint32", np.int8(-5), ["-5", "uint32"]),
    "same width, 32 bits": ("int32", np.uint32(2**32 - 1), ["4294967295", "int32"]),
    "uint64 for int32": ("int32", np.uint64(2**64 - 1), ["18446744073709551615", "int32"]),
    "Python int": ("int32", 2**31, ["2147483648", "int32"]),
    "huge Python int": ("int32", 2**70, ["1180591620717411303424", "int32"]),
    "float64 becomes infinite": ("float32", np.float64(1e300), ["1e+300", "float32"]),
    "float32 becomes infinite": ("float16", np.float32(70000), ["70000", "float16"]),
    "bfloat16 becomes infinite": ("bfloat16", np.float64(3.4e38), ["3.4e+38", "bfloat16"]),
    "Python float": ("float32", 1e300, ["1e+300", "float32"]),
    "complex becomes infinite": ("complex64", np.complex128(1e300j), ["1e+300", "complex64"]),
    "complex to real": ("float32", np.complex64(1 + 2j), ["(1+2j)", "float32"]),
    "complex without imaginary part": ("float32", np.complex64(1), ["(1+0j)", "float32"]),
    "float to int": ("int32", np.float32(1.5), ["1.5", "int32"]),
    "whole float to int": ("int32", np.float64(2), ["2.0", "int32"]),
    "Python float to int": ("int32", 2.5, ["2.5", "int32"]),
    "text": ("float32", "1.5", ["1.5", "float32"]),
    "object": ("float32", np.array(None, object), ["None", "float32"]),
}


@pytest.mark.parametrize(("dtype", "answer", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_number_that_fits_is_converted(answering, run, dtype, answer, expected):
    """To exactly the declared dtype, eager and compiled; 2 calls."""
    f, seen = answering(answer, jax.ShapeDtypeStruct((), jnp.dtype(dtype)))
    for g in (f, jax.jit(f)):
        got = np.asarray(run(g, X))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
    assert len(seen) == 2


@pytest.mark.parametrize(("dtype", "answer", "words"), REFUSED.values(), ids=REFUSED)
def test_number_that_does_not_fit_is_an_error_that_shows_it(
    answering, failure, dtype, answer, words
):
    """Nothing wraps around, becomes infinite, or loses a part in silence; 1 call each."""
    f, seen = answering(answer, jax.ShapeDtypeStruct((), jnp.dtype(dtype)))
    for g in (f, jax.jit(f)):
        message = assert_readable(failure(g, X))
        assert [word for word in words if word not in message] == []
    assert len(seen) == 2


def test_error_shows_the_one_value_among_many_that_does_not_fit(answering, failure):
    """Large arrays too; 1 call."""
    answer = np.zeros(1000)
    answer[777] = -1.25e300
    f, seen = answering(answer, jax.ShapeDtypeStruct((1000,), np.float32))
    assert "-1.25e+300" in assert_readable(failure(jax.jit(f), X))
    assert len(seen) == 1


def test_error_in_a_large_array_stays_short(answering, failure):
    """Of the wrong kind, as a whole; 1 call."""
    f, seen = answering(np.full(10_000, 1.5), jax.ShapeDtypeStruct((10_000,), np.int32))
    assert "1.5" in assert_readable(failure(jax.jit(f), X))
    assert len(seen) == 1


class Convertible:
    """Has ``__array__`` and nothing else."""

    def __array__(self, dtype=None, copy=None):
        return np.asarray(X, dtype)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)), None),
        (np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-2], None),
        (np.arange(6, dtype=np.float32).reshape(3, 2).T, None),
        (np.broadcast_to(X, (2, 3)), None),
        (np.arange(6, dtype=">f4").reshape(2, 3), None),
        (Convertible(), X),
        (np.float32(2), None),
    ],
    ids=["Fortran", "strided", "transposed", "broadcast", "big-endian", "__array__", "np.float32"],
)
def test_answer_of_any_layout_arrives_with_its_values(answering, run, answer, expected):
    """Values at their places, whatever the memory looks like; 2 calls."""
    expected = np.array(answer if expected is None else expected, np.float32)
    f, seen = answering(answer, jax.ShapeDtypeStruct(expected.shape, np.float32))
    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(run(g, X), expected)
    assert len(seen) == 2


def test_answer_may_be_the_argument_itself(our_pure, run):
    """Unchanged, or a view of it; 2 calls in one program."""
    seen = []

    def echo(x):
        seen.append(x)
        return x[::-1]

    f = our_pure(echo, THREE)
    np.testing.assert_array_equal(run(jax.jit(lambda x: f(f(x)) + x), X), 2 * X)
    assert len(seen) == 2


def test_answer_changed_after_it_was_returned_does_not_change_the_result(our_pure, run):
    """The host may reuse its buffer; 3 calls."""
    buffer = np.zeros(3, np.float32)

    def fill(x):
        buffer[:] = x
        return buffer

    f = our_pure(fill, THREE)
    answers = [run(f, X + number) for number in range(3)]
    buffer[:] = -1
    for number, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, X + number)


def test_good_calls_after_a_bad_one_are_good(our_pure, run, failure):
    """An error ends one run, not the program; 3 calls."""
    answers, seen = [X, np.ones(4, np.float32), X * 2], []

    def oracle(x):
        seen.append(x)
        return answers[len(seen) - 1]

    f = jax.jit(our_pure(oracle, THREE))
    np.testing.assert_array_equal(run(f, X), X)
    assert "(4,)" in assert_readable(failure(f, X))
    np.testing.assert_array_equal(run(f, X), X * 2)
    assert len(seen) == 3


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_io_callbacks_keep_the_same_contract(our_io, run, failure, ordered):
    """One bad answer, then a good one; 2 calls."""
    answers, seen = [np.ones(4, np.float32), np.ones(3)], []

    def oracle(x):
        seen.append(x)
        return answers[len(seen) - 1]

    f = jax.jit(our_io(oracle, THREE, ordered=ordered))
    assert "(4,)" in assert_readable(failure(f, X))
    np.testing.assert_array_equal(run(f, X), np.ones(3))
    assert len(seen) == 2


def test_bad_answer_is_recorded_as_the_error_of_its_call(answering, failure):
    """1 call, with its error."""
    f, _ = answering(np.ones(4, np.float32), THREE)
    with jaxcb.record() as r:
        failure(jax.jit(f), X)
    (call,) = r.recording
    assert "(4,)" in call.error


# Declaring the result


def test_expression_over_the_parameters_declares_any_structure(run):
    """Names, attributes, indices, tuples; 1 call each."""
    seen = []

    @jaxcb.pure(result="(z, z.shape[:1])")
    def halves(v, z):
        seen.append((v.shape, z.shape))
        return z / 2, z[:, 0]

    v, z = np.int32(1), np.arange(6, dtype=np.float32).reshape(2, 3)
    half, first = run(jax.jit(halves), v, z)
    np.testing.assert_array_equal(half, z / 2)
    np.testing.assert_array_equal(first, z[:, 0])
    assert seen == [((), (2, 3))]


def test_expression_none_declares_no_result(run):
    """An io callback for its effect; 1 call."""
    seen = []

    @jaxcb.io(result="None")
    def log(x):
        seen.append(float(x))

    assert run(jax.jit(log), np.float32(2)) is None
    assert seen == [2]


def test_expression_reads_parameters_by_name_however_they_are_given(run):
    """By position, by keyword, by default; 3 calls."""
    seen = []

    @jaxcb.pure(result="y")
    def second(x, y=X):
        seen.append(None)
        return np.asarray(y) + np.asarray(x)

    one = np.float32(1)
    np.testing.assert_array_equal(run(jax.jit(second), one, X), X + 1)
    np.testing.assert_array_equal(run(jax.jit(lambda x, y: second(y=y, x=x)), one, X), X + 1)
    np.testing.assert_array_equal(run(jax.jit(second), one), X + 1)
    assert len(seen) == 3


def test_function_of_the_parameters_declares_the_result(run):
    """For what an expression is too short for; 1 call."""
    seen = []

    @jaxcb.pure(result=lambda x, y: jax.ShapeDtypeStruct((*x.shape, *y.shape), x.dtype))
    def outer(x, y):
        seen.append(None)
        return np.outer(x, y)

    np.testing.assert_array_equal(run(jax.jit(outer), X, X[:2]), np.outer(X, X[:2]))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("w", ["w"]),
        ("x.nothing", ["x.nothing"]),
        ("x.shape[7]", ["x.shape[7]"]),
        ("x +", ["x +"]),
        ("1 / 0", ["1 / 0"]),
    ],
    ids=["unknown name", "unknown attribute", "out of range", "no expression", "raises"],
)
def test_result_expression_that_fails_is_an_error_that_quotes_it(expression, words):
    """Before anything runs: 0 calls; names the function and its expression."""
    seen = []

    def oracle(x):
        seen.append(x)
        return x

    with pytest.raises(Exception) as caught:  # its class is what went wrong
        jaxcb.pure(result=expression)(oracle)(X)
    assert [word for word in ("oracle", "result", *words) if word not in str(caught.value)] == []
    assert seen == []


@pytest.mark.parametrize(
    "result",
    [3, "3", object(), lambda x: 3, (SCALAR, "x", 3)],
    ids=["number", "expression", "object", "function", "inside a tuple"],
)
def test_result_that_is_no_shape_and_dtype_is_an_error(result):
    """Before anything runs: 0 calls."""
    seen = []

    def oracle(x):
        seen.append(x)
        return x

    with pytest.raises((TypeError, ValueError), match=r"oracle|shape"):
        jaxcb.pure(result=result)(oracle)(X)
    assert seen == []


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io], ids=["pure", "io"])
@pytest.mark.parametrize("form", ["bare", "called"])
def test_decorator_asks_for_a_result(flavor, form):
    """When the function is decorated; 0 calls."""
    with pytest.raises(ValueError, match=r"oracle[\s\S]*result"):

        @(flavor if form == "bare" else flavor())
        def oracle(x):
            return x


METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.mark.parametrize("method", ["parallel", "Sequential", 3, True], ids=repr)
def test_unknown_vmap_method_is_an_error_that_names_the_choices(our_pure, method):
    """When called or decorated, vmap or not; 0 calls."""
    seen = []
    with pytest.raises(ValueError) as caught:
        our_pure(seen.append, THREE, vmap_method=method)(X)
    message = str(caught.value)
    assert [word for word in (*METHODS, repr(method)) if word not in message] == []
    assert seen == []


def test_unknown_vmap_method_is_a_value_error_as_with_jax(pure):
    """The class that existing code catches; 0 calls."""
    seen = []
    with pytest.raises(ValueError, match="vmap_method"):
        pure(seen.append, THREE, vmap_method="parallel")(X)
    assert seen == []


# 64 bits

WIDE = ["float64", "int64", "uint64", "complex128"]


@eager_or_jit
@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_without_x64_is_an_error_when_called(pure, dtype, compiled):
    """As with JAX: nothing ran, nothing was narrowed in silence; 0 calls."""
    seen = []
    f = pure(seen.append, jax.ShapeDtypeStruct((), np.dtype(dtype)))  # declaring it is no error
    with pytest.raises(ValueError, match=r"64|x64"):
        compiled(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_of_io_without_x64_is_an_error_when_called(io, dtype):
    """As with JAX; 0 calls."""
    seen = []
    f = io(seen.append, {"here": jax.ShapeDtypeStruct((), np.dtype(dtype))})
    with pytest.raises(ValueError, match=r"64|x64"):
        jax.jit(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_with_x64_is_exact(our_pure, run, dtype):
    """The same declaration, in a context that allows it; 1 call."""
    answer = np.array(2**53 - 1, dtype)
    with jax.enable_x64(True):
        f = our_pure(lambda x: answer, jax.ShapeDtypeStruct((), np.dtype(dtype)))
        got = np.asarray(run(jax.jit(f), X))
    assert got.dtype == dtype
    assert got == answer


def test_result_like_a_64_bit_numpy_argument_is_as_wide_as_jax_holds_it(run):
    """``"x"`` is x as JAX sees it: no error, 32 bits without x64; 1 call."""
    seen = []

    @jaxcb.pure(result="x")
    def double(x):
        seen.append(x.dtype.name)
        return 2 * x

    answer = run(double, np.ones(3))
    assert answer.dtype == np.float32
    np.testing.assert_array_equal(answer, 2 * np.ones(3))
    assert seen == ["float32"]


def test_decorated_function_keeps_its_name_and_docstring():
    """It stands where the function stood; 0 calls."""

    @jaxcb.pure(result="x")
    def oracle(x):
        """Knows."""
        return x

    assert (oracle.__name__, oracle.__doc__) == ("oracle", "Knows.")
    assert "oracle" in repr(oracle)


def test_partial_and_callable_objects_are_host_functions_too(our_pure, run):
    """1 call each."""
    seen = []

    def scale(factor, x):
        seen.append(factor)
        return factor * x

    class Doubling:
        def __call__(self, x):
            return scale(np.float32(2), x)

    for host in (functools.partial(scale, np.float32(2)), Doubling()):
        np.testing.assert_array_equal(run(jax.jit(our_pure(host, THREE)), X), 2 * X)
    assert seen == [2, 2]
