"""The names and lines of the operations of a real program, for a profile."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.elision import operations, program_number

HERE = __file__


def product(x):
    return x @ x  # the line of dot_general


def program(x):
    y = product(x)
    y = jax.lax.fori_loop(0, 3, lambda i, y: jnp.cumsum(y), y.ravel())
    first = jaxcb.pure_callback(np.sin, y[0], y[0])
    second = jaxcb.pure_callback(np.cos, y[1], y[1])
    return jnp.sort(y), first, second


def line_of(text):
    """The number of the line of this file that has `text`."""
    lines = Path(HERE).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module")
def module():
    return jax.jit(program).lower(jnp.ones((3, 3))).compile().runtime_executable().hlo_modules()[0]


@pytest.fixture(scope="module")
def text(module):
    return module.to_string()


@pytest.fixture(scope="module")
def names(text):
    """The names of all instructions, as XLA prints them."""
    words = [line.split() for line in text.splitlines() if line.startswith(" ") and " = " in line]
    return {(word[1] if word[0] == "ROOT" else word[0]).lstrip("%") for word in words}


def test_operations_are_named_by_primitive_and_line_of_the_user(text, names):
    found = operations(text, names)
    assert set(found) == names
    (product,) = (one for name, one in found.items() if name.startswith("dot_general"))
    assert product.name == "dot_general"
    assert (product.place.function, product.place.file) == ("product", HERE)
    assert product.place.line == line_of("the line of dot_general")
    loops = [one for name, one in found.items() if name.startswith("while")]
    assert {one.name for one in loops} == {"while"}
    assert line_of("fori_loop(0, 3") in {one.place.line for one in loops if one.place}


def test_host_calls_have_the_number_that_lowering_gave_them(text, names):
    found = operations(text, names).values()
    calls = {one.host_call: one.place.line for one in found if one.host_call is not None}
    assert calls == {0: line_of("(np.sin, y[0]"), 1: line_of("(np.cos, y[1]")}


def test_only_wanted_operations_are_returned(text, names):
    some = sorted(names)[:2]
    assert set(operations(text, {*some, "no_such.1"})) == set(some)
    assert operations(text, set()) == {}


def test_number_of_the_program_is_that_of_its_runs(module):
    """XLA's profile names a program by its number, which no two programs share."""
    other = jax.jit(lambda x: x + 1).lower(1.0).compile().runtime_executable().hlo_modules()[0]
    numbers = [program_number(one.as_serialized_hlo_module_proto()) for one in (module, other)]
    assert len({0, *numbers}) == 3


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_program_is_a_value_error_or_has_other_names(module, text, names, data):
    serialized = module.as_serialized_hlo_module_proto()
    changed, letters = bytearray(serialized), list(text)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        letters[data.draw(st.integers(0, len(letters) - 1))] = data.draw(st.characters())
    cut = data.draw(st.integers(0, len(letters)))
    for damaged in ("".join(letters), text[:cut]):
        try:
            assert set(operations(damaged, names)) <= names
        except ValueError:
            continue
    for damaged in (bytes(changed), serialized[: min(cut, len(serialized))]):
        try:
            program_number(damaged)
        except ValueError:
            continue
