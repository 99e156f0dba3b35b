"""What a report says of calls for batch elements that may not need them: only what is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import summarize

equinox = pytest.importorskip("equinox")

pytestmark = [pytest.mark.kept, pytest.mark.usefixtures("nothing_compiled_before")]


def cool(x):
    return np.asarray(x / 2, np.float32)


ours = jaxcb.pure(cool, result="x")


def jaxs(x):
    struct = jax.ShapeDtypeStruct((), np.float32)
    return jax.pure_callback(cool, struct, x, vmap_method="sequential")


FLAVORS = pytest.mark.parametrize("call", [ours, jaxs], ids=["ours", "jax"])


def jax_loop(keep_on, body, start, **_):
    return jax.lax.while_loop(keep_on, body, start)


LOOPS = {
    "jax": jax_loop,
    "lax": lambda *loop: equinox.internal.while_loop(*loop, kind="lax"),
    "bounded": lambda *loop: equinox.internal.while_loop(*loop, kind="bounded", max_steps=20),
    "checkpointed": lambda *loop: equinox.internal.while_loop(
        *loop, kind="checkpointed", max_steps=20
    ),
}


def run_for(steps, call, loop):
    """Run a loop that makes as many calls as `steps` says for each batch element."""

    def steps_of(count):
        keep_on = lambda state: state[0] < count  # noqa: E731
        body = lambda state: (state[0] + 1, call(state[1]))  # noqa: E731
        return loop(keep_on, body, (jnp.array(0), jnp.array(64.0)))[1]

    with jaxcb.observe_jax() as recorded:
        jax.jit(jax.vmap(steps_of))(jnp.array(steps)).block_until_ready()
    (summary,) = summarize(recorded.recording)
    return summary


@FLAVORS
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loop_of_elements_that_end_apart_may_be_called_for_finished_ones(call, loop):
    """24 calls for 11 that are needed: equinox's loops go on for all elements, as JAX's do."""
    found = run_for([1, 2, 8], call, loop)
    if call is ours and loop is jax_loop:
        assert found.calls == 11
        assert "11 of 24 batch elements reached it" in found.notes
        return
    assert found.calls == 24
    assert "may be called for finished elements" in found.hints
    assert "may be called again until the last one finishes" in " ".join(found.notes)


@FLAVORS
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loop_of_elements_that_end_together_is_not_said_to_call_for_finished_ones(call, loop):
    found = run_for([3, 3], call, loop)
    assert found.calls == 6
    assert not any("also called" in hint for hint in found.hints)
    assert "are called again" not in " ".join(found.notes)


@FLAVORS
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loop_of_one_element_has_no_finished_ones(call, loop):
    found = run_for([3], call, loop)
    assert (found.calls, found.hints) == (3, ())
    assert "finish" not in " ".join(found.notes)


def test_mask_that_leaves_out_the_finished_elements_is_not_said_to_call_for_them():
    with jaxcb.record() as recorded:
        cooled = jax.vmap(
            lambda x: jax.lax.while_loop(
                lambda x: x > 1, lambda x: ours.where(x > 1, x, otherwise=x), x
            )
        )
        jax.jit(cooled)(jnp.array([2.0, 4.0, 64.0])).block_until_ready()
    (summary,) = summarize(recorded.recording)
    assert summary.calls == 9
    assert not any("finished" in hint for hint in summary.hints)
    assert "its mask was true for 9 of 18 batch elements" in summary.notes


@FLAVORS
def test_branch_that_all_elements_take_is_not_said_to_be_called_in_vain(call):
    with jaxcb.observe_jax() as recorded:
        chosen = jax.vmap(lambda x: jax.lax.cond(x > 0, call, lambda x: x, x))
        jax.jit(chosen)(jnp.ones(3)).block_until_ready()
    (summary,) = summarize(recorded.recording)
    if call is ours:
        assert summary.hints == () and "3 of 3 batch elements reached it" in summary.notes
        return
    assert "may be called for branches not taken" in summary.hints
    assert not any("also called" in hint for hint in summary.hints)


@FLAVORS
def test_switch_with_one_branch_has_no_other_branches(call):
    with jaxcb.observe_jax() as recorded:
        jax.jit(jax.vmap(lambda x: jax.lax.switch(0, [call], x)))(jnp.ones(3)).block_until_ready()
    (summary,) = summarize(recorded.recording)
    assert summary.calls == 3
    assert "branch" not in " ".join((*summary.hints, *summary.notes))


@pytest.mark.parametrize("loop", ["jax", "lax"])
def test_loop_whose_elements_share_their_count_has_no_finished_ones(loop):
    def counted(x):
        body = lambda state: (state[0] + 1, ours(state[1]))  # noqa: E731
        return LOOPS[loop](lambda state: state[0] < 3, body, (jnp.array(0), x))[1]

    with jaxcb.record() as recorded:
        jax.jit(jax.vmap(counted))(jnp.ones(2)).block_until_ready()
    (summary,) = summarize(recorded.recording)
    assert "finish" not in " ".join((*summary.hints, *summary.notes))
