"""An io callback runs every time the program reaches it, also in a training loop."""

import math

import jax
import numpy as np
import pytest
from jax import lax

from tests.conformance._parameters import (
    FIVE_FROM_0,
    SCALAR,
    eager_or_jit,
    like_first,
    ordered_or_not,
)

# A random generator on the host


@eager_or_jit
@ordered_or_not
def test_state_on_the_host_advances_with_every_run(io, spy, run, noise, ordered, compiled):
    sample, expected = noise
    host, seen = spy(sample)
    f = compiled(io(host, like_first, ordered=ordered))
    for _ in range(3):
        np.testing.assert_array_equal(run(f, FIVE_FROM_0), expected((5,)))
    assert len(seen) == 3


def test_two_equal_calls_both_run(io, spy, run, noise):
    sample, expected = noise
    host, seen = spy(sample)
    f = io(host, like_first, ordered=True)
    first, second = run(jax.jit(lambda x: (f(x), f(x))), FIVE_FROM_0)
    np.testing.assert_array_equal(first, expected((5,)))
    np.testing.assert_array_equal(second, expected((5,)))
    assert len(seen) == 2


# Exactly one host call per run


@pytest.mark.long
@eager_or_jit
@ordered_or_not
@pytest.mark.parametrize("operands", [(), (np.float32(2),)], ids=["no operand", "operand"])
@pytest.mark.parametrize("result", [None, (), SCALAR], ids=["None", "empty", "unused"])
def test_callback_runs_once_per_run_even_if_nothing_depends_on_it(
    io, run, result, operands, ordered, compiled
):
    seen = []

    def host(*args):
        seen.append(len(args))
        return np.float32(1) if result is SCALAR else result

    f = io(host, result, ordered=ordered)

    def program(x):
        assert jax.tree.structure(f(*operands)) == jax.tree.structure(result)
        return x + 1

    program = compiled(program)
    assert run(program, 1) == 2
    assert seen == [len(operands)]
    assert run(program, 1) == 2
    assert seen == 2 * [len(operands)]


@pytest.fixture
def train():
    """``train(f)`` runs 5 steps of gradient descent on w**2 / 2; each calls ``f(step, loss)``."""

    def trained(f):
        @jax.jit
        def run(w):
            def step(i, w):
                loss, slope = jax.value_and_grad(lambda w: w * w / 2)(w)
                f(i, loss)
                return w - slope / 2

            return lax.fori_loop(0, 5, step, w)

        w = run(np.float32(4))
        jax.effects_barrier()
        return w

    return trained


LOSSES = [8.0, 2.0, 0.5, 0.125, 0.03125]


def test_training_loop_appends_to_a_list_in_order(io, train):
    """All calls have finished after `jax.effects_barrier`."""
    history = []

    def log(step, loss):
        history.append((int(step), float(loss)))

    assert train(io(log, None, ordered=True)) == 4 / 2**5
    assert history == list(enumerate(LOSSES))


def test_training_loop_writes_a_file_in_order(io, train, tmp_path):
    path = tmp_path / "loss.csv"

    def log(step, loss):
        with open(path, "a") as file:
            file.write(f"{int(step)},{float(loss)}\n")

    assert train(io(log, None, ordered=True)) == 4 / 2**5
    assert path.read_text().splitlines() == [f"{i},{loss}" for i, loss in enumerate(LOSSES)]


def test_training_loop_drives_a_progress_bar(io, train):
    """The host function may be a bound method of an object with state."""

    class Bar:
        def __init__(self):
            self.shown = ""

        def update(self, step, loss):
            assert math.isfinite(loss)
            self.shown += f"[{'#' * (int(step) + 1):<5}]"

    bar = Bar()
    assert train(io(bar.update, None, ordered=True)) == 4 / 2**5
    assert bar.shown == "[#    ][##   ][###  ][#### ][#####]"
