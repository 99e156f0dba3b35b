"""A lambda has the name of the variable that its callback is assigned to, where that is certain."""

import functools

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pure = functools.partial(jaxcb.pure, result="x")
doubled = jaxcb.pure(lambda x: 2 * x, result="x")
decorated = jaxcb.pure(result="x")(lambda x: x)
annotated: object = jaxcb.pure(
    lambda x: x
    + 1,
    result=jax.ShapeDtypeStruct((), np.float32),
)  # fmt: skip
first = pure(lambda x: x)
second = pure(lambda x: "ä" and x)
third = pure(lambda x: x)
named = lambda x: x  # noqa: E731
in_dict = {"a": pure(lambda x: x)}
one, other = pure(lambda x: x), pure(lambda x: x)
chained = again = pure(lambda x: x)
mapped = list(map(pure, [lambda x: x]))
of_tree = jax.tree.map(pure, {"a": lambda x: x})
jitted = jax.jit(pure(lambda x: x))


def made(function):
    made_here = pure(function)
    return made_here


def in_function():
    local = jaxcb.debug(lambda x: None)
    captured = jaxcb.tap(lambda x: None)
    buffer = jaxcb.buffer(lambda out, x: None, result="x")
    return local, buffer, lambda: captured


def recorded(callback):
    """The name in a recording."""
    with jaxcb.record() as r:
        jax.block_until_ready(callback(np.float32(1)))
    return {fact.site.function for fact in r.recording.lowered}


@pytest.mark.parametrize("name", ["doubled", "decorated", "annotated", "first", "second", "third"])
def test_callback_assigned_to_a_variable_has_its_name(name):
    assert recorded(globals()[name]) == {name}


def test_variables_of_a_function_name_every_flavor():
    local, buffer, captured = in_function()
    assert [one.host.name for one in (local, buffer, captured())] == ["local", "buffer", "captured"]


@pytest.mark.parametrize(
    "callback",
    [in_dict["a"], one, other, chained, mapped[0], of_tree["a"], made(lambda x: x), pure(named)],
)
def test_other_lambdas_have_no_name(callback):
    assert recorded(callback) == {"<lambda>"}


def test_callback_inside_another_call_has_no_name():
    assert recorded(jitted) == {"<lambda>"}


def test_code_without_source_gives_no_name():
    names = {"pure": pure}
    exec("without = pure(lambda x: x)", names)
    assert recorded(names["without"]) == {"<lambda>"}


def test_functions_keep_their_own_names():
    def own(x):
        return x

    variable = pure(own)
    assert recorded(variable) == {"own"}
