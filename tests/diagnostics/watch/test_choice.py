"""The variables that a block watches: by name, function and line."""

import inspect

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb


def inner(x):
    y = jnp.sin(x)
    i = jnp.arange(3)
    return y + i.sum()


@jax.jit
def outer(x):
    y = inner(x) * 2
    z = y + 1
    return z


def line_of(source):
    lines, first = inspect.getsourcelines(outer.__wrapped__)
    return first + [line.strip() for line in lines].index(source)


LINE = line_of("y = inner(x) * 2")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("y", {"inner y", "outer y"}),
        ("inner.y", {"inner y"}),
        ("inner()", {"inner inner()"}),
        ("inner.*", {"inner y", "inner inner()"}),
        ("inner.*, z", {"inner y", "inner inner()", "outer z"}),
        ("inner.i", {"inner i"}),
        (["inner.*", "i"], {"inner y", "inner i", "inner inner()"}),
        (f"test_choice.py:{LINE}", {"outer y"}),
        (f"watch/test_choice.py:{LINE}-{LINE + 1}", {"outer y", "outer z"}),
        (f"choice.py:{LINE}", set()),
        ("outer.other", set()),
    ],
)
def test_variables_are_chosen_by_name_function_and_line(names, expected):
    with jaxcb.watching(names) as seen:
        outer(jnp.ones(2))
    assert {f"{series.function} {series.name}" for series in seen.series} == expected


@pytest.mark.parametrize(
    "names", ["a b", "*", ".x", "f.", "a.b.c", "m.py:5-3", "m.py:", "class", ["a", 3]]
)
def test_choice_that_means_nothing_is_refused(names):
    with pytest.raises(ValueError, match="does not choose variables"):
        jaxcb.watching(names)
