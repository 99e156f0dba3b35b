"""What numba cannot compile is an error that says why, where and what to do."""

import inspect
import signal
from collections import namedtuple

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled._function import compiled_function
from jupyter_jaxcb.stack.results import ResultError

SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.float32([3, 5, 7])


def compiled(function, result="x", flavor=jaxcb.pure, **options):
    return flavor(function, result=result, compile="numba", **options)


def unknown(x):
    y = x + 1
    return no_such_name(y)  # noqa: F821


def unsupported(x):
    return np.busday_count(x, x)


def unsupported_statement(x):
    with np.errstate() as state:
        return x + len(state)


# The line, counted from the first of the function, if numba knows it; and a part of the reason.
LINES = {
    unknown: (2, "no_such_name"),
    unsupported: (1, "busday_count"),
    unsupported_statement: (None, "with (context manager) as (variable)"),
}


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize("function", LINES)
def test_what_numba_cannot_compile_is_an_error_of_one_line(function, flavor):
    line, reason = LINES[function]
    with pytest.raises(TypeError) as caught:
        jax.jit(compiled(function, SCALAR, flavor))(2.0)
    text = str(caught.value).partition("\n---")[0]  # JAX adds lines on its frames
    assert text.startswith(f"numba cannot compile {function.__name__} for (float32): ")
    assert reason in text and "\n" not in text and "\x1b" not in text
    if line is not None:
        assert f"(line {inspect.getsourcelines(function)[1] + line})" in text
    assert text.endswith("Write it with what numba supports, or drop compile='numba'.")


def as_namedtuple(pair):
    return pair.x + pair.y


def as_list(pair):
    return pair[0] + pair[1]


def optional(x):
    return None if x[0] > 5 else x


def in_dict(x):
    return {"y": x}


Pair = namedtuple("Pair", "x y")
REFUSED = {
    "unknown name": (unknown, SCALAR, np.float32(2)),
    "namedtuple": (as_namedtuple, X, Pair(X, X)),
    "list": (as_list, X, [X, X]),
    "optional result": (optional, X, X),
    "dict as a result": (in_dict, X, X),
    "declared dict": (in_dict, {"y": X}, X),
    "declared float16": (lambda x: x, jax.ShapeDtypeStruct((3,), np.float16), X),
    "float16": (lambda x: x, "x", X.astype(np.float16)),
    "complex for real": (lambda x: 1j * x, "x", X),
}


@pytest.mark.long
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize("case", REFUSED)
def test_eager_code_refuses_what_jit_refuses_in_the_same_words(case, flavor):
    function, result, argument = REFUSED[case]
    callback = compiled(function, result, flavor)
    raised = []
    for transform in (lambda f: f, jax.jit):
        with pytest.raises(Exception) as caught:
            transform(callback)(argument)
        text = str(caught.value).partition("\n---")[0]  # JAX adds lines on its frames
        raised.append((type(caught.value), text))
    assert raised[0] == raised[1]
    assert raised[0][0] in (TypeError, ResultError)


@pytest.mark.long
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap])
def test_eager_code_takes_what_jit_takes(transform):
    def scaled(x, pair=(2.0, 1.0), *, by=3.0):
        return x * by * pair[0] + pair[1]

    np.testing.assert_array_equal(transform(compiled(scaled))(X), 6 * X + 1)
    callback = compiled(scaled)
    np.testing.assert_array_equal(transform(lambda x: callback(x, (x, x), by=2))(X), 2 * X**2 + X)


@pytest.mark.filterwarnings("ignore:the pure callback clear writes into an argument")
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_writing_into_an_argument_is_an_error_that_says_so(transform):
    def clear(x):
        x[0] = 0
        return x

    with pytest.raises(Exception) as caught:
        transform(compiled(clear))(X)
    error = jaxcb.host_error(caught.value) or caught.value
    assert type(error) is TypeError
    assert "it writes into an argument" in str(error) and "x.copy()" in str(error)


def test_buffer_callbacks_cannot_write_into_their_arguments():
    def clear(out, x):
        out[:] = x
        x[0] = 0

    with pytest.raises(TypeError, match="it writes into an argument"):
        jax.jit(compiled(clear, flavor=jaxcb.buffer))(X)


MISMATCHES = {
    "a number for an array": (lambda x: x.sum(), "x", "float32 when compiled, expected an array"),
    "an array for a number": (lambda x: x, SCALAR, "expected a number of float32"),
    "another rank": (lambda x: x.reshape(1, -1), "x", "expected an array of rank 1 of float32"),
    "complex for real": (lambda x: 1j * x, "x", r"returns complex numbers \(.*\) when compiled"),
    "real for integer": (lambda x: x, "x.astype(int)", "returns floating numbers"),
    "nothing": (lambda x: None, "x", "returns none when compiled"),
    "text": (lambda x: "text", "x", "returns unicode_type when compiled"),
    "an array for a tuple": (lambda x: x, "(x, x)", r"returns .* expected a tuple of 2"),
    "too short a tuple": (lambda x: (x,), "(x, x)", r"returns .* expected a tuple of 2"),
    "an array in a tuple": (lambda x: (x, x), "(x, x.sum())", r"\[1\] returns .* a number of"),
}


def declared(kind, x):
    forms = {
        "x": x, "(x, x)": (x, x), "(x, x.sum())": (x, SCALAR),
        "x.astype(int)": jax.ShapeDtypeStruct(x.shape, np.int32),
    }  # fmt: skip
    return forms.get(kind, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", MISMATCHES)
def test_result_that_cannot_match_is_an_error_while_tracing(kind):
    function, result, message = MISMATCHES[kind]
    callback = compiled(function, lambda x: declared(result, x))
    with pytest.raises(ResultError, match=message):
        jax.jit(callback).lower(X)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("flavor", "function", "result"),
    [
        (jaxcb.pure, lambda x: (x, x), (SCALAR,)),
        (jaxcb.io, lambda x: x, None),
        (jaxcb.buffer, lambda out, x: x, SCALAR),
    ],
    ids=["longer tuple", "a result for none", "a result of a buffer callback"],
)
def test_more_results_than_declared_are_an_error_as_in_python(flavor, function, result, transform):
    with pytest.raises(Exception) as caught:
        jax.block_until_ready(transform(compiled(function, result, flavor))(1.0))
    error = jaxcb.host_error(caught.value) or caught.value
    assert type(error) is ResultError


def test_eager_call_runs_the_compiled_function():
    """Python would not find the division by zero: NumPy only warns."""

    def width(x):
        return (x * 0 + 2**31 - 1) * 2

    callback = compiled(width, cast=True)
    assert int(callback(np.int32(1))) == -2
    with jax.enable_x64(True):
        wide = compiled(width, jax.ShapeDtypeStruct((), np.int64))
        assert int(wide(np.int32(1))) == 2**32 - 2


def test_function_that_njit_compiled_is_taken_as_it_is():
    @numba.njit(fastmath=True)
    def double(x):
        return 2 * x

    callback = compiled(double)
    assert callback.host.name == "double"
    for transform in (lambda f: f, jax.jit, jax.vmap):
        np.testing.assert_array_equal(transform(callback)(X), 2 * X)
    assert compiled_function(double)._dispatcher is double


def test_functions_call_other_compiled_functions_and_see_constants():
    weights = np.float32([1, 10, 100])

    @numba.njit
    def weighted(x):
        return (x * weights).sum()

    callback = compiled(lambda x: weighted(x) + 1, SCALAR)
    assert float(jax.jit(callback)(X)) == 3 + 50 + 700 + 1


def test_a_function_is_compiled_once_for_all_callbacks_and_programs():
    def double(x):
        return x + x

    for flavor in (jaxcb.pure, jaxcb.io, jaxcb.pure):
        jax.jit(compiled(double, flavor=flavor))(X)
    assert len(compiled_function(double)._kernels) == 1


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_in_place_operators_on_an_argument_are_an_error_that_says_so(transform):
    def increased(x):
        x += 1
        return x

    with pytest.raises(Exception, match="it writes into an argument"):
        jax.block_until_ready(transform(compiled(increased, flavor=jaxcb.io))(X))


@pytest.mark.filterwarnings("ignore:.*calls registered, another callback")
@pytest.mark.filterwarnings("ignore:.*uses JAX")
@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: x + ARRAY_OF_JAX, "pass it as an argument"),
        (lambda x: plain(x), "Decorate the function that it calls with numba.njit"),
        (lambda x: registered(x), "It calls a callback"),
        (numba.njit("float64(float64)")(lambda x: x), "Drop the signatures of numba.njit"),
    ],
    ids=["array of JAX", "function", "callback", "signature"],
)
def test_error_of_numba_comes_with_what_to_do(function, advice):
    with pytest.raises(TypeError, match=advice):
        jax.jit(compiled(function))(X)


def plain(x):
    return x


registered = jaxcb.pure(plain, result="x")
ARRAY_OF_JAX = jnp.zeros(2)


class _TimeIsUp(Exception):
    """What a signal handler raises."""


def _handle(error):
    """Raise an error as a signal handler does, in the midst of numba's work."""

    def handler(number, frame):
        raise error

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, previous)


@pytest.mark.kept
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "error",
    [
        _TimeIsUp("after 5 s"),
        MemoryError("no room"),
        OSError("full"),
        ValueError("mine"),
        numba.errors.TypingError("of a function of the user that is compiled meanwhile"),
    ],
)
def test_error_of_a_signal_handler_is_not_one_of_numba(monkeypatch, error, jitted):
    def half(x):
        return x / 2

    callback = compiled(half)
    call = jax.jit(callback) if jitted else callback
    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "compile", lambda *_: _handle(error))
        with pytest.raises(Exception) as caught:
            call(np.float32(3))
    assert caught.value is error or jaxcb.host_error(caught.value) is error
    assert call(np.float32(3)) == 1.5  # it is compiled at the next call


@pytest.mark.kept
def test_lack_of_memory_in_numba_is_not_reworded(monkeypatch):
    def no_room(*_):
        raise MemoryError("no room")

    as_in_numba = type(no_room)(
        no_room.__code__, {"__name__": "numba.core", "MemoryError": MemoryError}
    )
    monkeypatch.setattr(Dispatcher, "compile", as_in_numba)
    with pytest.raises(MemoryError, match="no room"):
        compiled(lambda x: x * 2)(np.float32(3))
