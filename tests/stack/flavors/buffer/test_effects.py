"""Which buffer callbacks run, and the reasons reported for those that do not."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import Status, summarize


@pytest.fixture
def counted():
    """Return an object that makes buffer callbacks and counts their calls."""

    class Counted:
        calls = 0

        def make(self, **options):
            def host(out, x):
                self.calls += 1
                np.copyto(out, x)

            return jaxcb.buffer(result="x", **options)(host)

    return Counted()


@pytest.mark.parametrize("keep", [False, True])
def test_unused_callback_runs_if_it_has_side_effects(x, counted, keep):
    call = counted.make(has_side_effect=keep)
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(lambda x: (call(x), x)[1])(x))
    (summary,) = summarize(r.recording)
    assert counted.calls == keep
    assert summary.status == (Status.KEPT if keep else Status.UNUSED)
    if not keep:
        assert summary.advice.endswith("give it has_side_effect=True if it must run regardless")


def test_callback_whose_result_cannot_matter_is_optimized_away(x, counted):
    call = counted.make()
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(lambda x: jnp.where(jnp.bool_(False), call(x), x))(x))
    (summary,) = summarize(r.recording)
    assert (summary.status, counted.calls) == (Status.OPTIMIZED_AWAY, 0)


def test_side_effects_in_loops_run_as_often_under_grad_as_without(x, counted):
    call = counted.make(has_side_effect=True)

    def loss(w):
        def step(carry, i):
            call(i)
            return carry * w, None

        return jax.lax.scan(step, w, jnp.arange(5.0))[0]

    jax.block_until_ready(jax.jit(loss)(2.0))
    assert counted.calls == 5
    jax.block_until_ready(jax.jit(jax.value_and_grad(loss))(2.0))
    assert counted.calls == 10


def test_failing_call_is_recorded_with_its_element(x):
    @jaxcb.buffer(result="x")
    def host(out, x):
        if x[0] == 3:
            raise KeyError("batch element of three")
        out[...] = x

    with jaxcb.record() as r, pytest.raises(jax.errors.JaxRuntimeError, match="in batch element 1"):
        jax.block_until_ready(jax.jit(jax.vmap(host))(x))
    assert [(c.element, c.error) for c in r.recording] == [
        (0, None),
        (1, "KeyError: 'batch element of three'"),
    ]


def test_returning_a_value_is_an_error_that_says_where_to_write_it(x):
    call = jax.jit(jaxcb.buffer_callback(lambda context, out, x: x, x))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(call(x))
    assert str(jaxcb.host_error(caught.value)) == (
        "<lambda> returned Buffer, but a buffer_callback callback must not return any values. "
        "Write "
        "the result into the output array, out[...] = value, or register the function as pure."
    )


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "cannot register host as a buffer callback .*write an annotation of out"),
        ({"result": "infer"}, "cannot use result=.infer. for a buffer callback"),
        ({"result": "out"}, r"cannot evaluate result='out' of host\(x=float32\[2, 3\]\)"),
        (
            {"result": "x", "vmap_method": "fast"},
            "unknown vmap method 'fast'. Pass vmap_method= one of",
        ),
    ],
)
def test_error_of_a_wrong_registration_says_what_to_write(x, options, words):
    def host(out, x): ...

    with pytest.raises(ValueError, match=words):
        jaxcb.buffer(**options)(host)(x)


@pytest.mark.parametrize("shape", [(2, 0), (3, 2, 0)])
def test_every_element_is_called_for_its_side_effect_even_if_results_are_empty(shape):
    calls = []
    host = jaxcb.buffer(
        lambda out, x: calls.append(1), result="x", vmap_method="sequential", has_side_effect=True
    )
    for _ in shape[:-1]:
        host = jax.vmap(host)
    jax.block_until_ready(jax.jit(host)(jnp.zeros(shape)))
    assert len(calls) == math.prod(shape[:-1])
