"""With rematerialize=False a differentiated jax.checkpoint makes no call again, however deep."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

X = np.float32(0.5)


def sine(calls, flavor, rematerialize):
    """Return the sine as a program with a callback in it, which is called with each argument."""

    def host(x):
        calls.append(float(x))
        return np.sin(x)

    option = {"rematerialize": rematerialize}
    if flavor in ("debug", "tap"):
        observe = getattr(jaxcb, flavor)(lambda x: calls.append(float(x)), **option)
        return lambda x: (observe(x), jnp.sin(x))[1]
    if flavor == "io without a result":
        send = jaxcb.io(lambda x: calls.append(float(x)), result=None, **option)
        return lambda x: (send(lax.stop_gradient(x)), jnp.sin(x))[1]
    if flavor == "pure":
        return jaxcb.pure(lambda x: (host(x), np.cos(x)), result="x", gradient="x", **option)
    if flavor == "finite":
        return jaxcb.pure(host, result="x", derivative="finite", **option)
    if flavor == "io":
        step = jaxcb.io(host, result="x", **option)
    elif flavor == "io_callback":

        def step(x):
            return jaxcb.io_callback(host, x, x, **option)
    else:

        def write(out, x):
            out[...] = host(x)

        step = jaxcb.buffer(write, result="x", has_side_effect=True, **option)
    return lambda x: step(lax.stop_gradient(x)) + jnp.sin(x) - lax.stop_gradient(jnp.sin(x))


def loop(f):
    """Return what calls `f` three times; no derivative goes through a loop of unknown length."""

    def bound(x):
        return (0, lax.stop_gradient(x))

    def step(state):
        return (state[0] + 1, f(state[1]))

    return lambda x: jnp.sin(x * lax.while_loop(lambda state: state[0] < 3, step, bound(x))[1])


# In: a program with one call, which uses its results again. Out: one with calls in a checkpoint.
CHECKPOINTS = {
    "alone": (jax.checkpoint, 1),
    "jit": (lambda f: jax.checkpoint(jax.jit(f)), 1),
    "scan": (lambda f: jax.checkpoint(lambda x: lax.fori_loop(0, 3, lambda _, x: f(x), x)), 3),
    "in scan": (lambda f: lambda x: lax.fori_loop(0, 3, lambda _, x: jax.checkpoint(f)(x), x), 3),
    "cond": (lambda f: jax.checkpoint(lambda x: lax.cond(x > 0, f, lambda x: 2 * x, x)), 1),
    "while": (lambda f: jax.checkpoint(loop(f)), 3),
    "checkpoint": (lambda f: jax.checkpoint(lambda x: jnp.sin(jax.checkpoint(f)(x))), 1),
    "policy": (
        lambda f: jax.checkpoint(f, policy=jax.checkpoint_policies.nothing_saveable), 1
    ),
}  # fmt: skip
FLAVORS = ("pure", "io", "io without a result", "io_callback", "buffer", "debug", "tap")


def counted(flavor, program, rematerialize, differentiate=jax.value_and_grad):
    """Return the number of calls, and what the differentiated program returns."""
    calls = []
    f = sine(calls, flavor, rematerialize)
    returned = jax.jit(differentiate(program(lambda x: jnp.sin(x * f(x)))))(X)
    jax.block_until_ready(returned)
    jax.effects_barrier()
    return len(calls), returned


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_no_call_of_a_checkpoint_is_made_again(flavor, name):
    program, number = CHECKPOINTS[name]
    count, returned = counted(flavor, program, False)
    expected = jax.value_and_grad(program(lambda x: jnp.sin(x * jnp.sin(x))))(X)
    np.testing.assert_allclose(returned, expected, rtol=1e-5)
    assert count == number


@pytest.mark.parametrize("flavor", ["pure", "debug", "tap"])
def test_calls_of_a_checkpoint_are_made_again_by_default(flavor):
    assert counted(flavor, jax.checkpoint, True)[0] == 2


def test_calls_for_finite_differences_are_saved_too():
    """One call for the value, in which the slope of the backward pass has two runs."""
    plain, _ = counted("finite", lambda f: f, True)
    assert counted("finite", jax.checkpoint, False)[0] == plain
    assert counted("finite", jax.checkpoint, True)[0] == plain + 1


@pytest.mark.parametrize("flavor", ["io", "debug"])
def test_batch_elements_of_a_checkpoint_are_called_once(flavor):
    calls = []
    f = sine(calls, flavor, False)
    g = jax.jit(jax.vmap(jax.grad(jax.checkpoint(lambda x: jnp.sin(x * f(x))))))
    jax.block_until_ready(g(np.float32([0.5, 1, 1.5])))
    jax.effects_barrier()
    assert sorted(calls) == [0.5, 1, 1.5]


def test_batched_branch_of_a_checkpoint_is_called_for_the_elements_that_take_it():
    calls = []
    f = sine(calls, "io", False)
    g = jax.checkpoint(lambda x: lax.cond(x > 1, lambda x: jnp.sin(x * f(x)), jnp.cos, x))
    jax.block_until_ready(jax.jit(jax.vmap(jax.grad(g)))(np.float32([0.5, 2, 1.5])))
    jax.effects_barrier()
    assert sorted(calls) == [1.5, 2]


def test_io_in_a_differentiated_checkpoint_is_refused_with_the_way_out():
    step = jaxcb.io(np.sin, result="x")
    with pytest.raises(NotImplementedError, match=r"sin@.*Pass rematerialize=False to save"):
        jax.grad(jax.checkpoint(lambda x: jnp.sin(x * step(lax.stop_gradient(x)))))(X)


def test_ordered_io_is_not_saved():
    with pytest.raises(ValueError, match=r"ordered=True cannot be combined with rematerialize=F"):
        jaxcb.io(np.sin, result="x", ordered=True, rematerialize=False)


def test_policies_of_programs_without_such_calls_stay_as_they_are():
    policy = jax.checkpoint_policies.dots_saveable
    f = sine([], "debug", True)
    grad = jax.grad(jax.checkpoint(lambda x: jnp.sin(x * f(x)), policy=policy))
    (checkpoint,) = [e for e in jax.make_jaxpr(grad)(X).eqns if "policy" in e.params]
    assert checkpoint.params["policy"] is policy


@pytest.mark.parametrize("log", [jax.debug.callback, jaxcb.debug_callback])
def test_policy_that_answers_with_a_marker_is_read_as_by_jax(log):
    """Some policies of JAX return its marker for the contrary of saved, which is true in Python."""
    policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    calls = []

    @functools.partial(jax.checkpoint, policy=policy)
    def logged(x):
        log(calls.append, x)
        return jnp.sin(jnp.sin(x))

    for each, number in ((logged, 2), (lambda x: jax.vmap(logged)(x[None]).sum(), 4)):
        jax.block_until_ready(jax.jit(jax.grad(each))(X))
        jax.effects_barrier()
        assert len(calls) == number


@pytest.mark.parametrize("value", [None, 0, 1, "no", []])
def test_option_that_is_no_boolean_is_refused(value):
    with pytest.raises(ValueError, match="is neither True nor False"):
        jaxcb.debug(print, rematerialize=value)
