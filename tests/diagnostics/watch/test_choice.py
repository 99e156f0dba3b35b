"""The variables that a block watches: by name, function and line."""

import importlib
import inspect
from pathlib import Path

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


def test_cotangents_are_those_of_the_variables_of_the_chosen_function():
    with jaxcb.watching("inner.*") as seen:
        jax.grad(lambda x: outer(x).sum())(jnp.ones(2))
    backward = {(s.function, s.name) for s in seen.series if s.direction == "backward"}
    assert backward == {("inner", "y"), ("inner", "inner()")}


@pytest.mark.parametrize(
    "names", ["a b", "*", ".x", "f.", "a.b.c", "m.py:5-3", "m.py:", "class", ["a", 3]]
)
def test_choice_that_means_nothing_is_refused(names):
    with pytest.raises(ValueError, match="does not choose variables"):
        jaxcb.watching(names)


def test_equal_functions_in_two_files_are_watched_apart(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("layer", "other_layer"):
        source = "def scale(x):\n    y = x * 2.0\n    return y + 1\n"
        (tmp_path / f"{name}.py").write_text(source)
    layer, other = map(importlib.import_module, ("layer", "other_layer"))
    with jaxcb.watching("y") as seen:
        layer.scale(jnp.float32(1)), other.scale(jnp.float32(5))
        jax.jit(layer.scale)(1.0), jax.jit(other.scale)(5.0)
    found = {(Path(one.file).stem, one.count, one.min.min(), one.max.max()) for one in seen.series}
    assert found == {("layer", 2, 2, 2), ("other_layer", 2, 10, 10)}
