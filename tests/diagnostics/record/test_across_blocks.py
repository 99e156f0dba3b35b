"""Host calls and runs that begin in one block and end in the next one."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import Reason, Status, summarize

pytestmark = [pytest.mark.kept, pytest.mark.usefixtures("nothing_compiled_before")]


class Gate:
    """A host function that waits in its last call until it is opened."""

    def __init__(self, calls=1):
        self.inside, self.opened, self.left = threading.Event(), threading.Event(), calls

    def __call__(self, x):
        self.left -= 1
        if self.left == 0:
            self.inside.set()
            assert self.opened.wait(60)
        return np.asarray(x)


def over_two_blocks(gate, run):
    """Return the recordings of a block that starts `run` in a thread, and of one that joins it."""
    thread = threading.Thread(target=lambda: jax.block_until_ready(run()))
    with jaxcb.record() as first:
        thread.start()
        assert gate.inside.wait(60)
    with jaxcb.record() as second:
        gate.opened.set()
        thread.join()
    return first.recording, second.recording


def statuses(recording):
    return {one.site.function: (one.calls, one.status) for one in summarize(recording)}


WRAPPED = {
    "eager": lambda f: f(1.0),
    "jit": lambda f: jax.jit(f)(1.0),
    "scan": lambda f: jax.lax.scan(lambda x, _: (f(x), None), 1.0, length=3)[0],
}


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_call_is_in_the_block_in_which_it_ends(flavor, wrapped):
    gate = Gate()
    f = flavor(gate, result="x")
    first, second = over_two_blocks(gate, lambda: WRAPPED[wrapped](f))
    assert len(first.running) == 1 and len(first) == 0
    assert statuses(second) == {"Gate": (3 if wrapped == "scan" else 1, Status.KEPT)}


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_batch_elements_are_in_the_block_in_which_their_crossing_ends(jit):
    gate = Gate(calls=2)
    f = jit(jax.vmap(jaxcb.pure(gate, result="x")))
    first, second = over_two_blocks(gate, lambda: f(jnp.arange(3.0)))
    (running,) = first.running
    assert running.element == 1 and len(first) == 0
    assert statuses(second) == {"Gate": (3, Status.KEPT)}


def test_program_of_an_earlier_block_has_a_row_while_its_call_runs():
    gate = Gate(calls=2)
    f = jax.jit(jaxcb.pure(gate, result="x"))
    with jaxcb.record():
        f(1.0)
    first, second = over_two_blocks(gate, lambda: f(1.0))
    assert "call 2 was still running when the recording ended" in str(first)
    assert statuses(second) == {"Gate": (1, Status.KEPT)}


def test_outcomes_of_programs_are_reported_once():
    gate = Gate()
    ignored = jaxcb.pure(np.cos, result="x")

    @jax.jit
    def f(x):
        ignored(x)
        return jaxcb.pure(gate, result="x")(x)

    first, second = over_two_blocks(gate, lambda: f(1.0))
    for recording in (first, second):
        assert sorted(one.status for one in recording.outcomes) == [Status.KEPT, Status.UNUSED]


def test_block_of_another_capacity_has_its_own_log():
    gate = Gate()
    f = jaxcb.pure(gate, result="x")
    thread = threading.Thread(target=lambda: f(1.0))
    with jaxcb.record() as first:
        thread.start()
        assert gate.inside.wait(60)
    with jaxcb.record(capacity=1) as second:
        gate.opened.set()
        thread.join()
        f(1.0), f(1.0)
    assert len(first.recording.running) == 1
    assert second.recording.overflow == 1


def waiting(gate, x):
    """Wait for `gate` in a callback of JAX's own, which is not recorded."""
    return jax.pure_callback(gate, jax.ShapeDtypeStruct((), np.float32), x)


def check_in_part(recording, functions):
    for one in summarize(recording):
        assert (one.calls == 0) == (one.site.function in functions)
        if one.calls == 0:
            assert one.status is Status.UNKNOWN
            assert [cause.reason for cause in one.causes] == [Reason.RUN_IN_PART]
    text = str(recording)
    assert "has not run" not in text and "run the program" not in text
    assert "did not enter" not in text and "an earlier error" not in text


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_block_that_joins_a_run_does_not_say_that_its_program_has_not_run(flavor):
    gate = Gate(calls=2)
    sine, cosine = flavor(np.sin, result="x"), flavor(np.cos, result="x")

    @jax.jit
    def f(x):
        y = waiting(gate, sine(x))
        return jax.lax.cond(y > 5, cosine, lambda y: y, y)

    with jaxcb.record():
        f(1.0).block_until_ready()
    first, second = over_two_blocks(gate, lambda: f(1.0))
    assert statuses(first)["sin"] == (1, Status.KEPT)
    check_in_part(second, {"sin", "cos"})


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_calls_of_the_other_block_are_not_said_to_be_missing(flavor, fails):
    gate = Gate()
    sine, cosine = flavor(np.sin, result="x"), flavor(np.cos, result="x")
    before = flavor(lambda x: np.tan(x), result="x")

    def stop(x):
        gate(x)
        if fails:
            raise ValueError("no luck")
        return x

    @jax.jit
    def f(x):
        y = jax.lax.cond(x > 0, before, lambda x: x, sine(x))
        return cosine(flavor(stop, result="x")(y))

    def run():
        try:
            return f(1.0).block_until_ready()
        except jax.errors.JaxRuntimeError:
            assert fails

    first, second = over_two_blocks(gate, run)
    check_in_part(second, {"sin", "before"} | ({"cos"} if fails else set()))
    assert "has not run" not in str(first) and "did not enter" not in str(first)
    assert statuses(first)["cos"] == (0, Status.UNKNOWN)


def test_branch_of_a_run_in_one_block_is_not_reached():
    sine, cosine = jaxcb.pure(np.sin, result="x"), jaxcb.pure(np.cos, result="x")
    f = jax.jit(lambda x: jax.lax.cond(sine(x) > 5, cosine, lambda x: x, x))
    with jaxcb.record() as r:
        jax.block_until_ready(f(1.0))
    assert statuses(r.recording) == {"sin": (1, Status.KEPT), "cos": (0, Status.NOT_REACHED)}


@pytest.mark.parametrize("jitted", [True, False], ids=["jit", "ahead"])
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_site_after_the_call_of_an_unfinished_run_is_not_said_to_be_missing(flavor, jitted):
    gate = Gate()
    sine, cosine = flavor(np.sin, result="x"), flavor(np.cos, result="x")
    f = jax.jit(lambda x: jax.lax.cond(waiting(gate, sine(x)) < 5, cosine, lambda x: x, x))
    if not jitted:
        f = f.lower(1.0).compile()
    first, second = over_two_blocks(gate, lambda: f(1.0))
    assert not first.running
    check_in_part(first, {"cos"})
    check_in_part(second, {"sin"})


def test_run_that_began_before_a_block_and_goes_on_after_it_is_there_in_part():
    gates = Gate(), Gate()
    sine, cosine = jaxcb.pure(np.sin, result="x"), jaxcb.pure(np.cos, result="x")

    @jax.jit
    def f(x):
        y = waiting(gates[1], sine(waiting(gates[0], x)))
        return jax.lax.cond(y < 5, cosine, lambda x: x, y)

    thread = threading.Thread(target=lambda: f(1.0).block_until_ready())
    with jaxcb.record() as before:
        thread.start()
        assert gates[0].inside.wait(60)
    with jaxcb.record() as r:
        gates[0].opened.set()
        assert gates[1].inside.wait(60)
    gates[1].opened.set()
    thread.join()
    check_in_part(r.recording, {"cos"})
    check_in_part(before.recording, {"sin", "cos"})


def test_branch_of_a_run_that_ended_is_not_reached_in_the_next_block():
    gate = Gate()
    sine, cosine = jaxcb.pure(np.sin, result="x"), jaxcb.pure(np.cos, result="x")
    f = jax.jit(lambda x: jax.lax.cond(waiting(gate, sine(x)) > 5, cosine, lambda x: x, x))
    over_two_blocks(gate, lambda: f(1.0))
    with jaxcb.record() as r:
        jax.block_until_ready(f(1.0))
    assert statuses(r.recording) == {"sin": (1, Status.KEPT), "cos": (0, Status.NOT_REACHED)}
