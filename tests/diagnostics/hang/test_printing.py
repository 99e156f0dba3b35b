"""`jaxcb.watchdog` prints what hangs, in a block or for the rest of the process."""

import contextlib
import io
import math
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

S = jax.ShapeDtypeStruct((), np.float32)
DONE = threading.Event()


def waits(x):
    DONE.wait(30)
    return x


class Stderr(io.StringIO):
    """Lets `waits` return once its line is printed."""

    def write(self, text):
        super().write(text)
        if "waits (pure, test_printing.py:" in text:
            DONE.set()
        return len(text)


@pytest.fixture
def stderr():
    DONE.clear()
    yield Stderr()
    jaxcb.watchdog(math.inf)


def run():
    program = jax.jit(lambda x: jaxcb.pure_callback(waits, S, x))
    jax.block_until_ready(program(np.float32(1)))


def test_block_prints_the_call_that_does_not_return_and_all_stacks(stderr):
    with contextlib.redirect_stderr(stderr), jaxcb.watchdog(seconds=0.2):
        run()
    text = stderr.getvalue()
    assert "No host call has begun or returned for " in text
    line = waits.__code__.co_firstlineno + 1
    assert f"it waits at test_printing.py:{line}, 'DONE.wait(30)', and uses no processor" in text
    assert f"line {line}, in waits\n    DONE.wait(30)" in text


@pytest.mark.long
def test_plain_call_watches_until_another_one_replaces_it(stderr):
    with contextlib.redirect_stderr(stderr):
        jaxcb.watchdog(0.2)
        run()
        assert stderr.getvalue().count("waits (pure") == 1
        DONE.clear()
        with jaxcb.watchdog(math.inf):
            threading.Timer(0.5, DONE.set).start()  # the first one would have printed by then
            run()
        assert stderr.getvalue().count("waits (pure") == 1
        DONE.clear()
        run()  # the first one again
        assert stderr.getvalue().count("waits (pure") == 2


@pytest.mark.parametrize("seconds", [0, -1, math.nan, "30", None, True])
def test_seconds_must_be_a_number_above_zero(seconds):
    with pytest.raises(ValueError, match=r"not a number above 0\. Try seconds=30"):
        jaxcb.watchdog(seconds)
