"""``derivative="finite"`` of a SciPy function and of pytrees, and its step sizes."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.derivatives import step_sizes
from jupyter_jaxcb.recording import Status


def test_only_differentiated_arguments_are_perturbed_and_in_one_crossing():
    seen = []

    @jaxcb.pure(result="x", derivative="finite")
    def f(x, y, n):
        seen.append((x.dtype.name, y.dtype.name, n.dtype.name))
        return x * y * n

    with jaxcb.record() as r:
        got = jax.jit(jax.vmap(jax.grad(f), (0, None, None)))(jnp.arange(5.0), 2.0, 3)
    np.testing.assert_allclose(got, 6.0, rtol=1e-4)
    assert seen == [("float64", "float32", "int32")] * 10  # two for each batch element
    assert len({call.crossing for call in r.recording}) == 1
    assert {o.status for o in r.recording.outcomes} == {Status.KEPT, Status.UNUSED}


def test_pytrees_with_integers_and_unused_results_are_differentiated():
    @jaxcb.pure(result=lambda p, k: {"a": p["x"], "n": jax.ShapeDtypeStruct((), np.int32)},
                derivative="finite")  # fmt: skip
    def f(p, k):
        return {"a": p["x"] ** 2 * k + p["y"].sum(), "n": np.int32(len(p["x"]))}

    p = {"x": jnp.arange(1.0, 4.0), "y": jnp.ones(2)}
    value, grad = jax.value_and_grad(lambda p: f(p, 2)["a"].sum())(p)
    np.testing.assert_allclose(value, 34)
    np.testing.assert_allclose(grad["x"], [4, 8, 12], rtol=1e-3)
    np.testing.assert_allclose(grad["y"], [3, 3], rtol=1e-3)
    assert jax.jit(lambda p: f(p, 2)["n"])(p) == 3


@settings(max_examples=20)
@given(st.floats(-20, 20), st.sampled_from([1e-12, 1e-3, 1.0, 1e6]))
def test_step_is_proportional_to_the_scale_of_the_argument(exponent, size):
    x = np.float32(size) * np.float32([1.0, 0.5, 0.0])
    steps = step_sizes(x)
    assert np.all(steps > 0)
    np.testing.assert_allclose(steps / steps[0], [1, 0.5, 0.01], rtol=1e-5)
    square = jaxcb.pure(lambda x: x**3, result=lambda x: x, derivative="finite")
    got = jax.grad(lambda x: square(x).sum())(x)
    np.testing.assert_allclose(got, 3 * x**2, rtol=1e-3, atol=1e-3 * float(size) ** 2)


def test_rule_defined_later_replaces_finite_differences():
    f = jaxcb.pure(np.sin, result=lambda x: x, derivative="finite")
    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))
    assert jax.grad(f)(0.0) == 7.0
