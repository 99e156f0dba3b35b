"""JAX silently drops an io callback from a loop under differentiation: jax-ml/jax#16637.

Partial evaluation of scan and fori_loop drops equations that the gradient does not need, and JAX's
io effect does not prevent that. Ours does: there are as many calls as without the gradient, in
order.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ._both import OURS, THEIRS

W = np.float32(0.5)
SCALAR = jax.ShapeDtypeStruct((), np.float32)

ordered_or_not = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])


def loss_of(loop, operand, call):
    """Return a loss of five steps, each calling the host with a value that has no gradient."""

    def step(i, carry):
        i = jnp.asarray(i, jnp.float32)
        call(i if operand == "index" else lax.stop_gradient(carry * 0) + i)
        return carry * W + i

    def loss(w):
        if loop == "fori_loop":
            return lax.fori_loop(0, 5, step, w)
        return lax.scan(lambda carry, i: (step(i, carry), None), w, jnp.arange(5))[0]

    return loss


DERIVATIVES = {
    "value_and_grad": jax.value_and_grad,
    "grad": jax.grad,
    "jit of grad": lambda loss: jax.jit(jax.grad(loss)),
}


@pytest.fixture(params=["scan", "fori_loop"])
def loop(request):
    return request.param


@pytest.fixture(params=["index", "stop_gradient"])
def operand(request):
    return request.param


@pytest.fixture
def calls(loop, operand):
    """``calls(callbacks, differentiate, ordered, declared)`` returns the host arguments."""

    def made(callbacks, differentiate, ordered, declared=None):
        seen = []

        def host(x):
            seen.append(float(np.asarray(x)))
            return None if declared is None else np.float32(0)

        def call(x):
            callbacks.io_callback(host, declared, x, ordered=ordered)

        jax.block_until_ready(differentiate(loss_of(loop, operand, call))(W))
        jax.effects_barrier()
        return seen

    return made


@ordered_or_not
def test_callbacks_are_called_five_times_without_a_gradient(calls, ordered):
    for callbacks in (THEIRS, OURS):
        seen = calls(callbacks, lambda loss: loss, ordered)
        assert (seen if ordered else sorted(seen)) == [0, 1, 2, 3, 4]


@ordered_or_not
@pytest.mark.parametrize("differentiate", DERIVATIVES.values(), ids=DERIVATIVES)
def test_callback_of_jax_is_never_called_under_a_gradient(calls, differentiate, ordered):
    assert calls(THEIRS, differentiate, ordered) == []


@pytest.mark.long
@ordered_or_not
@pytest.mark.parametrize("declared", [None, SCALAR], ids=["no result", "unused result"])
@pytest.mark.parametrize("differentiate", DERIVATIVES.values(), ids=DERIVATIVES)
def test_our_callback_is_called_as_often_as_without_a_gradient(
    calls, differentiate, declared, ordered
):
    seen = calls(OURS, differentiate, ordered, declared)
    assert (seen if ordered else sorted(seen)) == [0, 1, 2, 3, 4]


@ordered_or_not
def test_callback_does_not_change_the_gradient(loop, operand, ordered):
    def call(x):
        OURS.io_callback(lambda x: None, None, x, ordered=ordered)

    found = jax.grad(loss_of(loop, operand, call))(W)
    np.testing.assert_allclose(found, W**5, rtol=1e-6)


@pytest.mark.long
@ordered_or_not
@pytest.mark.parametrize("differentiate", DERIVATIVES.values(), ids=DERIVATIVES)
def test_callback_without_operands_is_called_as_often_as_in_jax(loop, differentiate, ordered):
    """Differentiation hoists it out of the loop, because it does not depend on the step."""
    seen = {"theirs": 0, "ours": 0}

    def loss(whose, callbacks):
        def host():
            seen[whose] += 1

        def call(x):
            callbacks.io_callback(host, None, ordered=ordered)

        return loss_of(loop, "index", call)

    for whose, callbacks in (("theirs", THEIRS), ("ours", OURS)):
        jax.block_until_ready(differentiate(loss(whose, callbacks))(W))
        jax.effects_barrier()
    assert seen["ours"] == seen["theirs"] == 1
