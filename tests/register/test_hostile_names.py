"""A name with escape sequences reaches no terminal: in each text it is escaped, on one line."""

import contextlib
import io
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback

pytestmark = pytest.mark.kept
NAME = "ev\x1b[2Jil\u202e\n\u200bx"
SHOWN = r"ev\x1b[2Jil\u202e\n\u200bx"
STRUCT = jax.ShapeDtypeStruct((), np.float32)
X = np.float32(1)
LOG = []
LOCK = threading.Lock()


def named(function):
    function.__name__ = function.__qualname__ = NAME
    return function


def host():
    return named(lambda x: x)


def pure(function=None, **options):
    return jaxcb.pure(function or host(), result="x", **options)


def raises(x):
    raise ValueError("boom")


Named = type(NAME, (), {"__call__": lambda self, x: x})
NotCallable = type(NAME, (), {})


def observed():
    def of_jax(x):
        function = named(lambda x: LOG.append(1) or np.asarray(jnp.sin(x)))
        return jax.pure_callback(function, STRUCT, x)

    with jaxcb.observe_jax():
        jax.jit(of_jax)(X)


def watched(**options):
    with jaxcb.watching(**options):
        x = jnp.ones(3) * 2
    return x


CASES = {
    "repr of pure": pure,
    "repr of io": lambda: jaxcb.io(host(), result="x"),
    "repr of debug": lambda: jaxcb.debug(host()),
    "repr of tap": lambda: jaxcb.tap(host()),
    "repr of buffer": lambda: jaxcb.buffer(named(lambda out, x: None), result="x"),
    "repr of a callable object": lambda: pure(Named()),
    "repr of a host object": lambda: jaxcb.host_object(host()),
    "jaxpr": lambda: jax.make_jaxpr(pure())(X),
    "no result": lambda: jaxcb.pure(host()),
    "no result of an object": lambda: jaxcb.pure(Named()),
    "nothing": lambda: jaxcb.pure(host(), result=()),
    "shape": lambda: jaxcb.pure(host(), result="(3,)"),
    "failing inference": lambda: jaxcb.pure(named(lambda x: 1 / 0), result="infer")(X),
    "expression": lambda: jaxcb.pure(host(), result="z")(X),
    "function as the result": lambda: jaxcb.pure(host(), result=named(lambda x: 1 / 0))(X),
    "no function": lambda: pure(NotCallable()),
    "registered twice": lambda: jaxcb.io(pure(), result="x"),
    "linear": lambda: pure(linear="q"),
    "gradient": lambda: pure(gradient="q"),
    "partitioned": lambda: pure(partitioned="q"),
    "executor": lambda: pure(executor=NotCallable()),
    "numba": lambda: pure(Named(), compile="numba"),
    "rule": lambda: pure().defjvp(NotCallable()),
    "transpose": lambda: pure(linear="x").deftranspose(pure()),
    "side effect": lambda: pure(named(lambda x: LOG.append(x) or x)),
    "side effect of a drop-in": lambda: jaxcb.pure_callback(
        named(lambda x: LOG.append(x) or x), STRUCT, X
    ),
    "state": lambda: jaxcb.io(
        named(lambda x: LOG.append(x) or x), result="x", executor="processes"
    ),
    "JAX inside": lambda: jax.jit(pure(named(lambda x: np.asarray(jnp.sin(x)))))(X),
    "failed call": lambda: jax.jit(pure(named(raises)))(X),
    "wrong result": lambda: jax.jit(pure(named(lambda x: np.ones(3))))(X),
    "no derivative": lambda: jax.grad(pure())(X),
    "no vmap": lambda: jax.vmap(pure(vmap_method=None))(jnp.ones(3)),
    "unsent": lambda: jax.vmap(pure(named(lambda x: LOCK and x), executor="processes"))(
        jnp.ones(2)
    ),
    "failed drop-in": lambda: host_callback.call(named(raises), X, result_shape=STRUCT),
    "unhashable tap": lambda: host_callback.id_tap(NotCallable(), X),
    "observation": observed,
    "check": lambda: jaxcb.check(pure(named(lambda x: x + np.random.rand())), X),
    "check of no callback": lambda: jaxcb.check(NotCallable(), X),
    "size of a host object": lambda: jaxcb.host_object(host(), size=named(lambda o: "s"))(X),
    "no function for a host object": lambda: jaxcb.host_object(NotCallable()),
    "watch": lambda: jaxcb.watch(NotCallable()),
    "watching": lambda: jaxcb.watching(to=NotCallable()),
    "reduction": lambda: watched(norm=named(lambda x: "s")),
    "no reduction": lambda: jaxcb.watching(norm=NotCallable()),
}


def texts_of(error):
    while error is not None:
        yield str(error)
        yield from getattr(error, "__notes__", ())
        error = error.__cause__


def shown_by(call):
    """Return all that is displayed, warned of, printed or raised."""
    out = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        try:
            told = [repr(call())]
        except Exception as error:
            told = [*texts_of(error)]
    return "".join([*told, *(str(one.message) for one in caught), out.getvalue()])


@pytest.mark.parametrize("case", CASES)
def test_name_is_shown_escaped(case):
    text = shown_by(CASES[case])
    assert SHOWN in text
    assert not any(mark in text for mark in "\x1b\u202e\u200b")


class WithoutRepr:
    def __call__(self, x):
        return np.asarray(2 * x)

    def __repr__(self):
        raise RuntimeError("no text")


def test_function_whose_repr_raises_is_registered_called_and_recorded():
    double = jaxcb.pure(WithoutRepr(), result="x")
    with jaxcb.record() as r:
        assert double(X) == jaxcb.pure_callback(WithoutRepr(), STRUCT, X) == 2
    assert "WithoutRepr · pure · 2 calls" in str(r.recording)


class Compared:
    """A simulator with the comparison that many classes have, which knows only its own kind."""

    def __init__(self):
        self.state = np.ones(3)

    def __eq__(self, other):
        return self.state == other.state

    __hash__ = None

    def __call__(self, x):
        return np.float32(2) * x


class Nameless(Compared):
    """An object that has no name to tell."""

    @property
    def __name__(self):
        raise RuntimeError("no name")

    def __eq__(self, other):
        return self.state[:, None] == np.ones(3)  # an array, which is neither true nor false

    __hash__ = None


@pytest.mark.parametrize("kind", [Compared, Nameless])
@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io])
def test_object_that_cannot_be_compared_with_a_class_is_registered_and_called(register, kind):
    call = register(kind(), result="x")
    assert (call(np.float32(3)), jax.jit(lambda x: call(x))(np.float32(4))) == (6, 8)
