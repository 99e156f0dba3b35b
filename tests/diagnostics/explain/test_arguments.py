"""`explain` takes the arguments and functions that jit takes, and refuses others clearly."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import Hosts

from ._same import check, explain_only, in_new_thread, run

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)


def simple(h):
    a = h.pure("a", function=np.array)
    return lambda x: a(jnp.asarray(x))


def flagged(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x, flag=None, *, more=None: a(x) if flag else b(x) if more else x


def by_static_arguments(h):
    """Return a function that needs concrete values: a string, a number of calls and a shape."""
    a = h.pure("a")

    def f(x, kind, count, shape=(3, 1)):
        for _ in range(count):
            x = a(x.reshape(shape)) if kind == "column" else a(x)
        return x

    return f


class Model:
    def __init__(self, callback):
        self.callback = callback

    def __call__(self, x):
        return self.callback(x)

    def step(self, x, n=1):
        return self.callback(x) * n

    @classmethod
    def make(cls, callback, x):
        return callback(x)

    @staticmethod
    def plain(callback, x):
        return callback(x)


def static(make, **options):
    return lambda h: jax.jit(make(h), **options)


def scaled(h):
    a = h.pure("a")
    return lambda x, k, flag: x + k * a(x) if flag else x


def branched(h):
    a = h.pure("a")
    return lambda x, p, flag: lax.cond(p, lambda y: a(y), lambda y: y, x) if flag else x


def repeated(h):
    a = h.pure("a")
    return lambda x, n, flag: lax.fori_loop(0, n, lambda i, c: a(c), x) if flag else x


CASES = [
    ("a list", simple, ([1.0, 2.0],)),
    ("a python float", simple, (2.5,)),
    ("a python int", simple, (7,)),
    ("a python bool", simple, (True,)),
    ("a python complex", simple, (1j,)),
    ("a numpy scalar", simple, (np.float32(2),)),
    ("an int8", simple, (np.int8([1, 2]),)),
    ("an array of 64 bits", simple, (np.arange(3.0),)),
    ("a bfloat16", simple, (jnp.ones(3, jnp.bfloat16),)),
    ("an empty array", lambda h: lambda x: h.io("a")(x), (X[:0],)),
    ("a keyword", lambda h: lambda *, x: h.pure("a")(x), (), {"x": X}),
    ("an argument and a keyword", static(flagged), (X,), {}),
    ("none", flagged, (X, None), {"more": None}),
    ("a bool in an if", static(flagged, static_argnames=("flag", "more")), (X, True)),
    ("an int in an if", static(flagged, static_argnums=1), (X, 3)),
    ("a zero in an if", static(flagged, static_argnums=1), (X, 0)),
    ("a complex in an if", static(flagged, static_argnums=1), (X, 2j)),
    ("a keyword in an if", static(flagged, static_argnames="more"), (X,), {"more": 1.5}),
    ("a string", static(by_static_arguments, static_argnums=(1, 2)), (X, "row", 2)),
    ("a tuple", static(by_static_arguments, static_argnums=(1, 2, 3)), (X, "column", 1, (1, 3))),
    ("a function", static(lambda h: lambda x, f: f(h.pure("a")(x)), static_argnums=1), (X, abs)),
    ("a key", lambda h: lambda k: h.pure("a")(jax.random.uniform(k, (3,))), (jax.random.key(0),)),
    ("old keys", lambda h: lambda k: h.io("a")(k), (jax.random.PRNGKey(0),)),
    ("donation", static(simple, donate_argnums=0), (jnp.asarray(X),)),
    ("an argument that is not needed", lambda h: lambda x, y: h.pure("a")(x), (X, N)),
    ("kept arguments", static(simple, keep_unused=True), (X,)),
    ("a partial", lambda h: functools.partial(lambda f, x, k: f(x) * k, h.pure("a"), k=2), (X,)),
    ("a partial of jit", lambda h: functools.partial(jax.jit(simple(h))), (X,)),
    ("a callable", lambda h: Model(h.pure("a")), (X,)),
    ("a bound method", lambda h: Model(h.pure("a")).step, (X,), {"n": 2}),
    ("a classmethod", lambda h: functools.partial(Model.make, h.pure("a")), (X,)),
    ("a staticmethod", lambda h: functools.partial(Model.plain, h.pure("a")), (X,)),
    ("a jitted method", lambda h: jax.jit(Model(h.pure("a")).step), (X,)),
    ("a number beside a static one", static(scaled, static_argnames="flag"), (X, 3, True)),
    ("a zero beside a static one", static(scaled, static_argnums=2), (N, 0, True)),
    ("a bool beside a static one", static(branched, static_argnums=2), (X, True, 1)),
    ("a length beside a static one", static(repeated, static_argnums=2), (X, 3, True)),
    ("a length", static(repeated, static_argnums=2), (X, np.int32(3), True)),
    (
        "a static dtype",
        static(lambda h: lambda x, t: h.pure("a")(x.astype(t)), static_argnums=1),
        (X, np.float16),
        {},
    ),
    ("a static numpy scalar", static(flagged, static_argnums=1), (X, np.int32(1))),
    (
        "options of the compiler",
        static(simple, compiler_options={"xla_cpu_enable_fast_min_max": True}),
        (X,),
        {},
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "args", "kwargs"),
    [
        pytest.param(make, args, (*more, {})[0], id=name, marks=more[1:])
        for name, make, args, *more in CASES
    ],
)
@in_new_thread
def test_explanation_equals_the_run_for_these_arguments(make, args, kwargs):
    explain_hosts, run_hosts = Hosts(), Hosts()
    explained = explain_only((make(explain_hosts), args, kwargs), explain_hosts)
    check(explained, *run((make(run_hosts), args, kwargs), run_hosts))


def test_struct_may_be_larger_than_memory():
    hosts = Hosts()
    a = hosts.pure("a")
    huge = jax.ShapeDtypeStruct((1 << 20, 1 << 20), np.float32)
    (outcome,) = jaxcb.explain(lambda t: a(t["x"])[0, 0])({"x": huge}).outcomes
    assert outcome.compiled == 1


@pytest.mark.parametrize("number", [True, 3, 2.5, 1j])
def test_python_number_used_in_an_if_is_static(number):
    hosts = Hosts()
    a, b = hosts.pure("a"), hosts.pure("b")
    f = lambda x, n: a(x) if n else b(x)  # noqa: E731
    for value, function in ((number, "a"), (type(number)(0), "b")):
        (outcome,) = jaxcb.explain(f)(X, value).outcomes
        assert outcome.site.function == function


@pytest.mark.parametrize("thing", [None, 3, "f", X, {}])
def test_argument_that_is_not_a_function_is_a_type_error(thing):
    for explain in (jaxcb.explain, jaxcb.explain_matrix):
        with pytest.raises(TypeError, match=r"not a function.*function first"):
            explain(thing)


@pytest.mark.parametrize("args", [(X,), (1,), (True, 2.0)])
def test_error_of_the_function_is_raised(args):
    def f(*args):
        raise ValueError(f"of {len(args)} arguments")

    for explain in (jaxcb.explain, jaxcb.explain_matrix):
        with pytest.raises(ValueError, match=f"^of {len(args)} arguments"):
            explain(f)(*args)


def test_function_without_callbacks_gives_an_empty_recording():
    recording = jaxcb.explain(lambda x: x + 1)(X)
    assert recording.ahead
    assert recording.outcomes == ()
    assert repr(recording) == "<Recording without a run: no callbacks>"
