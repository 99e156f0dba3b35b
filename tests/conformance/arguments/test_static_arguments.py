"""Non-array arguments reach the host unchanged; pure and io require them to be hashable."""

import enum

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._every import our_returning_kinds, returning_kinds
from tests.conformance._parameters import SCALAR, TWO, X
from tests.conformance.conftest import PURE

PROGRAMS = {  # name: how to run the callback, number of host calls
    "eager": (lambda f: f(TWO), 1),
    "jit": (lambda f: jax.jit(f)(TWO), 1),
    "vmap": (lambda f: jax.vmap(f)(X), 3),
    "scan": (lambda f: jax.lax.map(f, X), 3),
}


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


class Unhashable:
    __hash__ = None


STATIC = {
    "string": "loss",
    "enum": Mode.TEST,
    "function": np.sin,
    "bytes": b"raw",
    "type": Mode,
    "frozen set": frozenset({"a"}),
    "object": object(),
    "dtype": np.dtype("float32"),
    "ellipsis": ...,
}


@pytest.mark.long
@our_returning_kinds
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("thing", STATIC.values(), ids=STATIC)
def test_hashable_object_reaches_the_host_unchanged(maker, run, thing, name):
    """As a positional argument, as a keyword argument and inside a pytree with arrays."""
    seen = []
    program, calls = PROGRAMS[name]

    def host(first, x, tree, *, last):
        seen.append([first, tree["kind"], tree["arrays"][1], last])
        return np.asarray(x) + np.asarray(tree["arrays"][0])

    if maker in PURE.values():
        f = maker(host, lambda first, x, *_, **__: SCALAR, vmap_method="sequential")
    else:
        f = maker(host, lambda first, x, *_, **__: SCALAR)

    def call(x):
        return f(thing, x, {"kind": thing, "arrays": (x, thing)}, last=thing)

    returned_value = run(program, call)
    np.testing.assert_array_equal(returned_value, 2 * (X if calls == 3 else TWO))
    assert len(seen) == calls
    assert all(got is thing for call in seen for got in call)


@our_returning_kinds
def test_different_static_arguments_are_compiled_separately(maker, run):
    seen = []
    f = maker(lambda name, x: seen.append(name) or np.asarray(x), lambda name, x: SCALAR)
    program = jax.jit(lambda x, name: f(name, x), static_argnums=1)
    for name in ("a", "b", "a"):
        run(program, TWO, name)
    assert seen == ["a", "b", "a"]


@our_returning_kinds
def test_equal_static_arguments_of_different_types_are_kept_apart(maker, run):
    """A string equals an instance of a subclass of str, but it is another argument."""

    class Name(str):
        pass

    seen = []
    f = maker(lambda name, key: seen.append(type(name)) or np.float32(0), lambda *_: SCALAR)
    key = jax.random.key(0)  # with a key, eager calls are compiled and cached by parameters
    for name in ("a", Name("a"), "a"):
        run(lambda name=name: f(name, key))
    assert seen == [str, Name, str]


PLACES = {
    "position": (lambda f, x, bad: f(x, bad), "[1]"),
    "keyword": (lambda f, x, bad: f(x, unit=bad), "['unit']"),
    "structure": (lambda f, x, bad: f(x, {"a": [x, bad]}), "[1]['a'][1]"),
    "first": (lambda f, x, bad: f(bad, x), "[0]"),
}


@our_returning_kinds
@pytest.mark.parametrize("compiled", [lambda f: f, jax.make_jaxpr], ids=["eager", "trace"])
@pytest.mark.parametrize(("call", "path"), PLACES.values(), ids=PLACES)
def test_error_about_an_unhashable_argument_names_its_path(maker, compiled, call, path):
    """It is raised when the callback is called or traced, before any host call."""
    seen = []
    f = maker(lambda *args, **kwargs: seen.append(args), lambda *_, **__: SCALAR)
    with pytest.raises(TypeError) as caught:
        compiled(lambda x: call(f, x, Unhashable()))(TWO)
    message = str(caught.value)
    assert f"(argument {path})" in message
    assert "not a valid JAX type" in message
    assert "Unhashable" in message
    assert seen == []


BAD = {"object": Unhashable(), "array of text": np.array(["text"]), "set": {1, 2}}


@returning_kinds
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_bad_arguments_are_a_type_error_as_in_jax(maker, bad):
    seen = []
    with pytest.raises(TypeError, match=r"JAX|abstract array"):
        maker(seen.append, SCALAR)(bad)
    assert seen == []


def test_debug_callback_passes_unhashable_objects_by_identity(debug, run):
    """Every run of the program passes the same object."""
    seen = []
    bad, late = Unhashable(), ["text", {1, 2}]
    f = debug(lambda x, bad, *, late: seen.append((bad, late[1])))
    program = jax.jit(lambda x: f(x, bad, late=late))
    for _ in range(3):
        run(program, TWO)
    run(jax.vmap(lambda x: f(x, bad, late=late)), X)
    assert len(seen) == 6
    assert all(got is bad and second is late[1] for got, second in seen)


def test_method_of_a_class_gets_its_instance_as_a_static_argument(run):
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @jaxcb.pure(result="x")
        def apply(self, x):
            return self.scale * x

    one, two = Model(np.float32(2)), Model(np.float32(3))
    assert run(jax.jit(lambda x: one.apply(two.apply(x))), TWO) == 12
    np.testing.assert_array_equal(run(jax.vmap(one.apply), X), 2 * X)
