"""A wrong call raises at once, with the same exception class and key words as in JAX."""

import jax
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, THREE, TWO, X

DROP_INS = {
    "pure": (jax.pure_callback, jaxcb.pure_callback),
    "io": (io_callback, jaxcb.io_callback),
}
PRINTS = (jax.debug.print, jaxcb.debug_print)
CALLBACKS = (jax.debug.callback, jaxcb.debug_callback)
seen = []


def host(*args, **kwargs):
    seen.append(args)
    return np.asarray(args[0])


# name: flavor, the wrong call, words of JAX's message that user code may look for
MISTAKES = {
    "unknown vmap_method": (
        "pure",
        lambda f: f(host, SCALAR, TWO, vmap_method="parallel"),
        "vmap_method",
    ),
    "vmap_method is not a string": (
        "pure",
        lambda f: f(host, SCALAR, TWO, vmap_method=3),
        "vmap_method",
    ),
    "no vmap_method under vmap": (
        "pure",
        lambda f: jax.vmap(lambda x: f(host, SCALAR, x))(X),
        "vmap_method",
    ),
    "differentiated": ("pure", lambda f: jax.grad(lambda x: f(host, SCALAR, x))(TWO), "JVP"),
    "64-bit result": ("pure", lambda f: f(host, jax.ShapeDtypeStruct((), np.int64), TWO), "64-bit"),
    "64-bit result inside": (
        "io",
        lambda f: f(host, {"a": [SCALAR, jax.ShapeDtypeStruct((), np.float64)]}, TWO),
        "64-bit",
    ),
    "64-bit array as the result": ("pure", lambda f: f(host, np.ones(3), TWO), "64-bit"),
    "differentiated io": ("io", lambda f: jax.grad(lambda x: f(host, SCALAR, x))(TWO), "JVP"),
    "vmap of ordered io": (
        "io",
        lambda f: jax.vmap(lambda x: f(host, SCALAR, x, ordered=True))(X),
        "ordered IO callback",
    ),
    "vmap of cond of ordered io": (
        "io",
        lambda f: jax.vmap(
            lambda x: lax.cond(x > 1, lambda x: f(host, SCALAR, x, ordered=True), lambda x: x, x)
        )(X),
        "",
    ),
    "no arguments": ("pure", lambda f: f(), "missing"),
    "no result": ("io", lambda f: f(host), "missing"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_error_has_the_class_and_the_words_of_the_error_of_jax(name):
    flavor, call, words = MISTAKES[name]
    seen.clear()
    caught = []
    for function in DROP_INS[flavor]:
        with pytest.raises(Exception) as error:  # the class is compared below
            call(function)
        caught.append(error.value)
    theirs, ours = caught
    assert isinstance(ours, type(theirs))
    assert words in str(theirs)
    assert words in str(ours)
    assert seen == []


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("flavor", DROP_INS)
@pytest.mark.parametrize("result", [3.0, object(), [SCALAR, "x y"], {"a": 1}], ids=type)
def test_result_without_shape_and_dtype_is_an_error_when_called(flavor, result, transform):
    """JAX raises AttributeError for ``result.dtype``; our error explains what to declare."""
    seen.clear()
    theirs, ours = DROP_INS[flavor]
    with pytest.raises((AttributeError, TypeError)):
        transform(lambda x: theirs(host, result, x))(TWO)
    with pytest.raises(ValueError, match="shape and dtype"):
        transform(lambda x: ours(host, result, x))(TWO)
    assert seen == []


@pytest.mark.parametrize("thing", [3, None, "f", X], ids=["3", "None", "string", "array"])
@pytest.mark.parametrize("flavor", DROP_INS)
def test_drop_in_rejects_what_is_not_callable_only_when_it_runs(flavor, thing):
    """JAX's pure and io callbacks do not check it when they are traced either."""
    for function in DROP_INS[flavor]:
        if thing is not X:
            jax.make_jaxpr(lambda x, f=function: f(thing, SCALAR, x))(TWO)
        with pytest.raises((jax.errors.JaxRuntimeError, TypeError)):
            jax.block_until_ready(function(thing, SCALAR, TWO))


@pytest.mark.parametrize("thing", [3, "f", X, ()], ids=["3", "string", "array", "tuple"])
def test_debug_callback_checks_that_its_function_is_callable(thing):
    messages = []
    for function in CALLBACKS:
        with pytest.raises(TypeError, match="must be callable") as caught:
            jax.make_jaxpr(lambda x, f=function: f(thing, x))(TWO)
        messages.append(str(caught.value))
    theirs, ours = messages
    assert ours == theirs.replace("jax.debug.callback", "debug_callback")


@pytest.mark.parametrize("thing", [3, "f", None], ids=repr)
@pytest.mark.parametrize("decorator", ["pure", "io", "debug"])
def test_decorator_checks_that_its_function_is_callable(decorator, thing):
    options = {} if decorator == "debug" else {"result": SCALAR}
    decorate = getattr(jaxcb, decorator)(**options)
    if thing is None:
        assert callable(decorate(None))
        return
    with pytest.raises(TypeError, match=f"cannot register .* {decorator} callback"):
        decorate(thing)


FORMATS = {
    "missing field": lambda p: p("{x} {y}", x=TWO),
    "missing position": lambda p: p("{} {}", TWO),
    "unused keyword": lambda p: p("{x}", x=TWO, y=TWO),
    "unused position": lambda p: p("{}", TWO, TWO),
    "no field": lambda p: p("done", x=TWO),
    "unclosed": lambda p: p("{x", x=TWO),
    "unopened": lambda p: p("x}", x=TWO),
    "both kinds of numbering": lambda p: p("{} {0}", TWO),
    "bad conversion": lambda p: p("{x!z}", x=TWO),
    "not a string": lambda p: p(3, TWO),
    "bytes": lambda p: p(b"{}", TWO),
    "missing inside": lambda p: p("{tree[b]}", tree={"a": TWO}),
    "f-string": lambda p: p(f"{TWO}", x=TWO),
}


@pytest.mark.parametrize("name", FORMATS)
def test_format_error_has_the_class_of_the_error_of_jax(capsys, name):
    """Both are raised while tracing, not when the program runs."""
    caught = []
    for function in PRINTS:
        with pytest.raises(Exception) as error:  # the class is compared below
            jax.make_jaxpr(lambda f=function: FORMATS[name](f))()
        caught.append(error.value)
    theirs, ours = caught
    assert type(ours) is type(theirs)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("args", [(TWO,), (TWO, TWO)], ids=["one", "two"])
def test_positional_arguments_of_the_options_call_are_refused(args):
    with pytest.raises(TypeError, match="unexpected arguments in the two-call form"):
        jaxcb.debug_print(None, *args, ordered=True)
    with pytest.raises(TypeError, match="unexpected arguments in the two-call form"):
        jaxcb.debug_callback(None, *args, ordered=True)


@pytest.mark.parametrize("options", [{}, {"ordered": True}, {"partitioned": True}], ids=str)
def test_call_with_options_alone_returns_a_function(options):
    assert callable(jaxcb.debug_print(**options))
    assert callable(jaxcb.debug_callback(**options))


def test_declared_64_bit_result_is_checked_at_every_call(pure):
    """The declaration is valid; a call is an error only where x64 is off."""
    f = pure(lambda x: np.zeros(3), jax.ShapeDtypeStruct((3,), np.float64))
    with pytest.raises(ValueError, match="64-bit"):
        f(X)
    with jax.enable_x64(True):
        assert f(X).dtype == np.float64
    with pytest.raises(ValueError, match="64-bit"):
        jax.jit(f)(X)
    assert THREE.dtype == np.float32
