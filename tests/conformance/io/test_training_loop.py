"""An ordered io callback logs every step of a training loop on the host, in order."""

import math

import jax
import numpy as np
import pytest
from jax import lax


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
