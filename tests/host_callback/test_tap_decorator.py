"""`jaxcb.tap` registers a function `f`; afterwards ``f(x)`` calls it and returns `x`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from .conftest import batch

CALLS = []


@pytest.fixture(autouse=True)
def calls():
    CALLS.clear()
    return CALLS


def test_function_with_one_parameter_gets_only_the_value(calls):
    @jaxcb.tap
    def look(x):
        calls.append(x.tolist())

    assert jax.vmap(lambda x: look(x) + 1)(jnp.arange(3)).tolist() == [1, 2, 3]
    assert calls == [[0, 1, 2]]


def test_function_with_two_parameters_also_gets_the_transforms(calls):
    @jaxcb.tap
    def look(x, transforms):
        calls.append((x.tolist(), transforms))

    jax.block_until_ready(jax.jit(jax.vmap(look))(jnp.arange(3)))
    assert calls == [([0, 1, 2], (batch(0),))]


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (0, -1), (-1, 0)])
def test_batch_axes_come_in_front_as_for_a_pure_callback(calls, way, axes):
    """`host_callback.id_tap` hands out the axes where the program has them, as JAX's did."""

    @jaxcb.tap
    def look(x, transforms):
        calls.append((x, transforms))

    def host(x):
        given.append(x)
        return x

    given = []
    pure = jaxcb.pure(host, result="x", vmap_method="expand_dims")
    inner, outer = axes
    x = np.arange(105).reshape(7, 5, 3)
    f = lambda one: jax.vmap(jax.vmap(one, in_axes=inner), in_axes=outer)  # noqa: E731
    returned = jax.block_until_ready(way(f(look))(x))
    np.testing.assert_array_equal(returned, way(f(pure))(x))
    ((seen, transforms),), (expected,) = calls, given
    np.testing.assert_array_equal(seen, expected)
    assert transforms == (batch(0), batch(0))


def test_unbatched_leaves_keep_their_shape_and_cotangents_their_order(calls):
    @jaxcb.tap
    def look(x, transforms):
        calls.append((jax.tree.map(np.shape, x), transforms))

    x, w = np.ones((3, 2), np.float32), np.ones(4, np.float32)
    jax.vmap(lambda x, w: look({"x": x, "w": w}), in_axes=(1, None))(x, w)
    transpose = jax.linear_transpose(jax.vmap(look, in_axes=1, out_axes=1), x)
    np.testing.assert_array_equal(
        *transpose(np.arange(6, dtype=np.float32).reshape(3, 2)), np.arange(6).reshape(3, 2)
    )
    assert calls == [
        ({"x": (2, 3), "w": (4,)}, (batch(None, 0),)),
        ((2, 3), (batch(0), ("transpose", {}))),
    ]


def default(x, scale=2): ...
def named(x, transforms=()): ...
def several(*args): ...
def keyword_only(x, *, transforms=None): ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [(default, ""), (named, "transforms"), (several, "transforms"), (keyword_only, ""), (max, "")],
)
def test_signature_decides_whether_transforms_are_passed(function, expected):
    assert jaxcb.tap(function).options == expected


@pytest.mark.parametrize("arguments", [(), (1, 2)])
def test_tap_takes_exactly_one_argument(arguments):
    look = jaxcb.tap(default)
    with pytest.raises(TypeError, match="the tap default takes one argument"):
        look(*arguments)
    with pytest.raises(TypeError, match=r"but got \(x=\.\.\.\)"):
        look(x=1)
    with pytest.raises(TypeError, match="default takes arrays and numbers, but got 'text'"):
        look("text")


def test_non_function_is_refused():
    with pytest.raises(TypeError, match="it is not a function"):
        jaxcb.tap(3)
    with pytest.raises(TypeError, match="Remove one of the two registrations"):
        jaxcb.tap(jaxcb.tap(default))


def test_compiled_programs_call_the_function_of_the_latest_cell_run(notebook, calls, compiles):
    cell = "@jaxcb.tap\ndef host(x): calls.append(float(x) + {})"
    notebook.names["calls"] = calls
    notebook.run(cell.format(10), "a cell")
    f = jax.jit(notebook.names["host"])
    jax.block_until_ready(f(np.float32(1)))
    with compiles() as counted:
        notebook.run(cell.format(20), "a cell")
        jax.block_until_ready(f(np.float32(1)))
    assert (calls, counted.count) == ([11, 21], 0)


def test_recording_has_its_name_and_flavor():
    look = jaxcb.tap(functools.wraps(default)(lambda x: None))
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(look)(1.0))
    (outcome,) = r.recording.outcomes
    assert (outcome.site.function, outcome.site.flavor, outcome.status) == (
        "default",
        "tap",
        "kept",
    )
    assert repr(look) == "<tap callback default>"
