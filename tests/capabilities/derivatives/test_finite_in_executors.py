"""``derivative="finite"`` with ``executor=``: the differences run in the executor, too."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

PAIR = (jax.ShapeDtypeStruct((2,), np.float32), jax.ShapeDtypeStruct((), np.float32))


def simulate(params, target):
    path = params["speed"] * np.sin(target)
    return path, np.square(path).sum() + params["mass"] ** 2


PARAMS = {"mass": jnp.arange(1.0, 4.0), "speed": jnp.arange(6.0).reshape(3, 2) / 4}
TARGET = jnp.array([0.5, 2.0])


def slopes(wrapped=lambda gradient: jax.vmap(gradient, (0, None)), **options):
    f = jaxcb.pure(simulate, result=PAIR, derivative="finite", **options)

    def loss(params, target):
        path, energy = f(params, target)
        return path.sum() + energy

    return wrapped(jax.value_and_grad(loss, (0, 1)))(PARAMS, TARGET)


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_derivatives_are_those_without_an_executor(executor):
    def jitted(gradient):
        return jax.jit(jax.vmap(gradient, (0, None)))

    assert_same(slopes(executor=executor), slopes())
    assert_same(slopes(jitted, executor=executor), slopes(jitted))


def test_workers_make_one_call_for_each_element_of_the_differentiated_arguments():
    with jaxcb.record() as r:
        jax.block_until_ready(slopes(executor="threads:2"))
    sites = [r.recording.lowered[call.lowered].site.function for call in r.recording]
    made = [c for c, site in zip(r.recording, sites, strict=True) if "(finite" in site]
    assert len(made) == 3 * (1 + 2 + 2)
    assert all("jaxcb-threads" in r.recording.threads[call.thread] for call in made)


def test_timeout_abandons_differences():
    released = threading.Event()

    def host(x):
        if x.dtype == np.float64:
            released.wait(timeout=20)
        return x

    f = jaxcb.pure(host, result="x", derivative="finite", executor="threads:2", timeout=0.02)
    try:
        with pytest.raises(Exception) as raised:
            jax.block_until_ready(jax.grad(f)(1.0))
    finally:
        released.set()
    assert isinstance(jaxcb.host_error(raised.value) or raised.value, TimeoutError)


@pytest.mark.parametrize("run", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_error_shows_the_arguments_of_the_function_only(run):
    def host(x, y):
        if x.dtype == np.float64:
            raise OSError("no license")
        return x * y

    f = jaxcb.pure(host, result="x", derivative="finite", executor="threads:2")
    with pytest.raises(Exception) as raised:
        jax.block_until_ready(run(jax.grad(f))(3.0, 4))
    error = jaxcb.host_error(raised.value)
    assert "called with float32[] = 3, int32[] = 4" in "".join(error.__notes__)
    assert "called with float32[], int32[];" in str(raised.value)


def test_masked_differences_run_for_the_needed_elements_only():
    seen = []

    def host(x):
        seen.append(float(x))
        return np.sqrt(x)

    f = jaxcb.pure(host, result="x", derivative="finite", executor="threads:2")
    x = jnp.array([4.0, -1.0, 9.0])

    def root(x):
        return f.where(x > 0, x, otherwise=0.0)

    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(root)))(x), [1 / 4, 0, 1 / 6], rtol=1e-3)
    assert min(seen) > 0


def test_error_in_a_worker_process_names_the_perturbed_element():
    def host(x):
        import math

        return np.float32(math.sqrt(x[1]))

    f = jaxcb.pure(host, result="x.shape[:0]", derivative="finite", executor="processes:2")
    with pytest.raises(Exception, match=r"math domain error|expected a nonnegative") as raised:
        jax.jit(jax.grad(f))(jnp.zeros(2))
    notes = "\n".join(jaxcb.host_error(raised.value).__notes__)
    assert "element 1 was moved from 0.0 to -0.0049" in notes
