"""Debug callbacks take arguments that are not arrays, and any keyword argument."""

import jax
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_FROM_1, TWO

# Arguments that are not arrays


class Settings:
    """An unhashable object that is equal only to itself."""

    __hash__ = None


@pytest.mark.parametrize(
    ("transform", "calls"),
    [
        (lambda f: f(TWO), 1),
        (lambda f: jax.jit(f)(TWO), 1),
        (lambda f: jax.vmap(f)(FIVE_FROM_1), 5),
        (lambda f: jax.grad(lambda x: (f(x), x)[1])(TWO), 1),
        (lambda f: lax.map(f, FIVE_FROM_1), 5),
    ],
    ids=["eager", "jit", "vmap", "grad", "lax.map"],
)
def test_strings_and_objects_reach_the_host_unchanged(debug, transform, calls):
    """As positional arguments, as keyword arguments and inside pytrees."""
    seen = []
    settings = Settings()

    def host(name, x, tree, *, unit, of):
        seen.append((name, np.asarray(x).shape, tree["kind"], tree["nothing"], unit, of))
        assert of is settings
        assert np.asarray(tree["y"]).shape == np.asarray(x).shape

    f = debug(host)

    def program(x):
        f("loss", x, {"kind": "train", "y": x + 1, "nothing": None}, unit="nat", of=settings)
        return x

    transform(program)
    jax.effects_barrier()
    assert seen == calls * [("loss", (), "train", None, "nat", settings)]


@pytest.mark.parametrize("number", [3, 2.5, True, 1 + 2j], ids=repr)
def test_python_numbers_keep_their_value(debug, run, number):
    seen = []
    f = debug(lambda x, k: seen.append((np.asarray(x).item(), np.asarray(k).item())))
    run(lambda: f(number, k=number))
    run(jax.jit(lambda: f(number, k=number)))
    assert seen == 2 * [(number, number)]


# The one-call form, and the two-call form, whose first call takes the options


def test_two_call_form_passes_every_keyword_of_the_second_call_to_the_host_function(run):
    """Even keywords that are options in the first call."""
    seen = []

    def host(x, *, ordered, partitioned):
        seen.append((float(x), float(ordered), float(partitioned)))

    run(
        jax.jit(
            lambda x: jaxcb.debug_callback(ordered=True)(host, x, ordered=x + 1, partitioned=x + 2)
        ),
        TWO,
    )
    assert seen == [(2.0, 3.0, 4.0)]


def test_one_call_form_does_not_pass_options_to_the_host_function(run):
    seen = []
    f = jax.jit(lambda x: jaxcb.debug_callback(lambda **k: seen.append([*k]), x=x, ordered=True))
    run(f, TWO)
    assert seen == [["x"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jaxcb.debug_print(x=1),
            "debug_print received unexpected arguments in the two-call form: "
            "args=() kwargs={'x': 1}",
        ),
        (
            lambda: jaxcb.debug_print(None, 2),
            "debug_print received unexpected arguments in the two-call form: args=(2,) kwargs={}",
        ),
        (
            lambda: jaxcb.debug_callback(x=1),
            "debug_callback received unexpected arguments in the two-call form: "
            "args=() kwargs={'x': 1}",
        ),
        (
            lambda: jaxcb.debug_callback(None, 2, ordered=True),
            "debug_callback received unexpected arguments in the two-call form: "
            "args=(2,) kwargs={}",
        ),
    ],
    ids=["print, keyword", "print, positional", "callback, keyword", "callback, positional"],
)
def test_arguments_in_the_call_of_the_options_are_a_type_error(call, message):
    """The message is the same as JAX's."""
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("form", ["one call", "two calls"])
@pytest.mark.parametrize("thing", ["{}", 3], ids=repr)
def test_callback_must_be_callable(form, thing):
    """As in JAX, the call raises a TypeError."""
    call = jaxcb.debug_callback if form == "one call" else jaxcb.debug_callback()
    with pytest.raises(TypeError, match="must be callable"):
        call(thing, TWO)
