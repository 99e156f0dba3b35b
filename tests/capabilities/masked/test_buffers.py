"""Masked buffer callbacks write the needed elements alone, in XLA's memory where they can."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(6, dtype=np.float32)
NEEDED = X % 2 == 1
ROWS = X.reshape(3, 2)


def masked(f, otherwise=-1):
    return jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=otherwise)))


def test_call_gets_the_memory_of_its_element():
    """As without a mask: nothing is copied on the way in or out."""
    steps = []

    @jaxcb.buffer(result="x")
    def host(out, x):
        steps.append((out.ctypes.data, x.ctypes.data))
        out[...] = 2 * x

    found = masked(host)(np.array([True, False, True]), ROWS)
    np.testing.assert_array_equal(found, [[0, 2], [-1, -1], [8, 10]])
    (out, x), (other_out, other_x) = steps
    assert (other_out - out, other_x - x) == (16, 16)


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_unwritten_output_of_a_needed_element_is_an_error(method):
    @jaxcb.buffer(result="x", vmap_method=method, check=True)
    def host(out, x):
        out[x < 5] = 0

    mask = np.array([True, False, False, True, False, False])
    assert masked(host)(mask, X).tolist() == [0, -1, -1, 0, -1, -1]
    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        masked(host)(NEEDED, X)
    assert "did not write 1 of" in str(jaxcb.host_error(raised.value))


def test_gathered_output_may_be_kept_because_it_is_not_memory_of_xla():
    kept = []

    @jaxcb.buffer(result="x", vmap_method="expand_dims")
    def host(out, x):
        kept.append(out)
        out[...] = 2 * x

    found = masked(host)(NEEDED, X)
    kept[0][...] = 99
    np.testing.assert_array_equal(found, np.where(NEEDED, 2 * X, -1))
    with pytest.warns(jaxcb.RetainedBufferWarning, match=r"host kept out after"):
        masked(host)(np.full(6, True), X).block_until_ready()


def test_kept_output_of_an_element_is_warned_of():
    kept = []

    @jaxcb.buffer(result="x")
    def host(out, x):
        kept.append(out)
        out[...] = 2 * x

    with pytest.warns(jaxcb.RetainedBufferWarning, match=r"host kept out after"):
        masked(host)(NEEDED, X).block_until_ready()


@pytest.mark.parametrize("jitted", [False, True])
def test_failing_element_is_named_and_recorded(jitted):
    def host(out, x):
        if x == 3:
            raise ValueError("no luck")
        out[...] = x

    f = jaxcb.buffer(host, result="x")
    program = masked(f) if jitted else jax.vmap(lambda m, x: f.where(m, x, otherwise=0))
    with jaxcb.record() as r, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        program(NEEDED, X)
    assert str(jaxcb.host_error(raised.value)) == "no luck"
    assert [(c.element, c.error) for c in r.recording] == [(1, None), (3, "ValueError: no luck")]
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (6, 3)
    failed = r.recording.sample_values[-1]
    assert (failed.element, failed.operands, failed.failed) == (3, ("3",), True)


def test_recorded_values_are_those_of_the_needed_elements():
    @jaxcb.buffer(result="x")
    def double(out, x):
        out[...] = 2 * x

    nested = jax.vmap(jax.vmap(lambda m, x: double.where(m, x, otherwise=-1)))
    with jaxcb.record() as r:
        jax.jit(nested)(NEEDED.reshape(3, 2), ROWS).block_until_ready()
    values = {v.element: (v.operands, v.results) for v in r.recording.sample_values}
    assert values == {n: ((str(n),), (str(2 * n),)) for n in (1, 3, 5)}


def test_side_effect_happens_where_the_mask_is_true_though_the_result_is_unused():
    seen = []

    @jaxcb.buffer(result="x", has_side_effect=True)
    def log(out, x):
        seen.append(float(x))
        out[...] = x

    def program(m, x):
        log.where(m, x, otherwise=0)
        return x

    jax.block_until_ready(jax.jit(jax.vmap(program))(NEEDED, X))
    assert seen == [1, 3, 5]


@pytest.mark.parametrize("differentiate", [jax.grad, jax.jacfwd])
def test_derivative_rule_calls_buffer_callbacks_for_the_needed_elements(differentiate):
    seen = []

    def write(function):
        def host(out, x):
            seen.append((function.__name__, float(x)))
            out[...] = function(x)

        return jaxcb.buffer(host, result="x")

    sine, slope = write(np.sin), write(np.cos)
    sine.defjvp(lambda p, t: (sine(*p), slope(*p) * t[0]))
    f = lambda m, x: sine.where(m, x, otherwise=3 * x)  # noqa: E731
    found = jax.jit(jax.vmap(differentiate(f, argnums=1)))(NEEDED, X)
    np.testing.assert_allclose(found, np.where(NEEDED, np.cos(X), 3), rtol=1e-6)
    assert {x for name, x in seen if name == "cos"} == {1, 3, 5}
    assert {x for _, x in seen} == {1, 3, 5}


def test_parameters_of_any_tree_are_passed_beside_the_mask():
    seen = []

    def host(out, tree, kind, *, scale):
        seen.append(kind)
        out["a"][...] = tree["x"] * scale
        out["b"][...] = tree["n"]

    f = jaxcb.buffer(host, result=lambda tree, kind, scale: {"a": tree["x"], "b": tree["n"]})

    def call(x, n):
        others = {"a": jnp.nan, "b": -1}
        return f.where(n != 1, {"x": x, "n": n}, "mean", scale=2.0, otherwise=others)

    found = jax.jit(jax.vmap(call))(X[:3], np.arange(3))
    np.testing.assert_array_equal(found["a"], [0, np.nan, 4])
    np.testing.assert_array_equal(found["b"], [0, -1, 2])
    assert seen == ["mean"] * 2
