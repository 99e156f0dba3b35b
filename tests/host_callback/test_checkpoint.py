"""jax.checkpoint: the policy decides whether a tap runs again in the backward pass."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jupyter_jaxcb import host_callback as hcb
from tests.upgraded import UPGRADED

from .conftest import batch


def sin_of_tapped(seen, x):
    return jnp.sin(hcb.id_tap(seen, x))


def test_checkpoint_alone_taps_once(seen):
    seen.of(jax.checkpoint(functools.partial(sin_of_tapped, seen)), 1.0)
    assert seen.values == [1.0]


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("used", [True, False])
def test_gradient_of_a_checkpoint_taps_twice(seen, around, used):
    f = lambda x: sin_of_tapped(seen, x) if used else (hcb.id_tap(seen, x), jnp.sin(x))[1]  # noqa: E731
    np.testing.assert_allclose(
        seen.of(around(jax.grad(jax.checkpoint(f))), 1.0), np.cos(1.0), rtol=1e-6
    )
    assert (seen.values, seen.transforms) == ([1.0, 1.0], [(), ()])


def test_gradient_of_a_checkpoint_under_vmap_taps_two_batches(seen):
    f = jax.vmap(jax.grad(jax.checkpoint(functools.partial(sin_of_tapped, seen))))
    seen.of(f, jnp.arange(2.0))
    assert (seen.values, seen.transforms) == ([[0, 1], [0, 1]], [(batch(0),)] * 2)


def test_nested_checkpoints_tap_the_inner_function_three_times(seen):
    """The forward pass makes 2 of the 5 calls, recomputation in the backward pass the other 3."""
    inner = jax.checkpoint(lambda x: jnp.sin(hcb.id_tap(seen, ("in", x)[1])))
    outer = jax.checkpoint(lambda x: inner(jnp.sin(hcb.id_tap(seen, x))))
    seen.of(jax.grad(outer), 1.0)
    middle = float(np.sin(np.float32(1)))
    np.testing.assert_allclose(seen.values, [1, middle, 1, middle, middle], rtol=1e-6)


POLICIES = jax.checkpoint_policies


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (POLICIES.everything_saveable, 1),
        (POLICIES.nothing_saveable, 2),
        (POLICIES.dots_saveable, 2),
        (POLICIES.save_only_these_names("a"), 2),
        (
            POLICIES.save_and_offload_only_these_names(
                names_which_can_be_saved=["a"], names_which_can_be_offloaded=[],
                offload_src="device", offload_dst="pinned_host",
            ),
            2,
        ),
    ],
    ids=["everything", "nothing", "dots", "names", "offload"],
)  # fmt: skip
def test_policy_decides_whether_a_tap_runs_again(seen, policy, calls):
    f = jax.checkpoint(functools.partial(sin_of_tapped, seen), policy=policy)
    seen.of(jax.grad(f), 1.0)
    assert seen.values == [1.0] * calls


def test_backward_pass_of_a_loop_taps_its_checkpointed_body_in_reverse_order(seen):
    body = jax.checkpoint(lambda c, _: (hcb.id_tap(seen, c) * 2 + 0 * jnp.sin(c), None))
    seen.of(jax.grad(lambda x: lax.scan(body, x, None, length=3)[0]), 1.0)
    assert seen.values == [1, 2, 4, 4, 2, 1]


def test_call_in_a_checkpoint_runs_again(seen):
    calls = []

    def host(x):
        calls.append(float(x))
        return x

    @jax.checkpoint
    def f(x):
        return jnp.sin(x) * hcb.call(host, lax.stop_gradient(x), result_shape=x)

    jax.block_until_ready(jax.grad(f)(2.0))
    hcb.barrier_wait()
    assert calls == [2.0, 2.0]


@pytest.mark.parametrize("custom", [jax.custom_jvp, jax.custom_vjp])
def test_custom_derivative_inside_a_checkpoint_taps_once(seen, custom):
    """JAX 0.4.30 ran such functions twice; JAX no longer reruns them if they have effects.

    The replacement of `jax.checkpoint` that JAX prepares runs them twice again.
    """
    double = custom(lambda x: 2 * hcb.id_tap(seen, x))
    if custom is jax.custom_jvp:
        double.defjvp(lambda p, t: (double(*p), 2 * t[0]))
    else:
        double.defvjp(lambda x: (double(x), None), lambda _, ct: (2 * ct,))
    seen.of(jax.grad(jax.checkpoint(lambda x: jnp.sin(double(x)))), 1.0)
    assert seen.values == [1.0] * (2 if UPGRADED else 1)


def test_loop_invariant_tap_stays_in_a_checkpointed_loop(seen):
    f = jax.checkpoint(
        lambda x: lax.scan(lambda c, _: (c * hcb.id_tap(seen, x), None), 1.0, None, length=3)[0]
    )
    assert seen.of(jax.jit(jax.grad(f)), 2.0) == 12.0
    assert seen.values == [2.0] * 6


def test_checkpoint_without_used_results_keeps_its_tap_if_the_value_comes_from_outside(seen):
    """JAX 0.4.30 kept the tap of a constant, too, and JAX 0.12 does so again."""
    f = lambda x: (jax.checkpoint(lambda y: hcb.id_tap(seen, y))(x), 2 * x)[1]  # noqa: E731
    constant = lambda x: (jax.checkpoint(lambda: hcb.id_tap(seen, 7.0))(), 2 * x)[1]  # noqa: E731
    assert seen.of(jax.jit(f), 3.0) == 6.0
    assert seen.values == [3.0]
    assert seen.of(jax.jit(constant), 3.0) == 6.0
    assert seen.values == ([7.0] if jax.__version_info__ >= (0, 12) else [])
