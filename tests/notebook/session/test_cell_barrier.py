"""What a cell prints while it waits for host calls."""

import time
from types import SimpleNamespace

import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import set_clock_of_cells, wait_of_a_cell


@pytest.fixture
def printed(capsys):
    """Return what is printed at each of some host calls that look often, 0.4 s after each other."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic, clock.perf_counter_ns = (lambda: clock.now), time.perf_counter_ns

    def lines(calls, looks):
        def wait(seconds, look):
            @jaxcb.pure(result="x")
            def step(x):
                for _ in range(looks):
                    clock.now += 0.4
                    look()
                return x

            for _ in range(calls):
                step(1.0)
            return True

        wait_of_a_cell(SimpleNamespace(wait=wait))
        return capsys.readouterr().err.splitlines()

    set_clock_of_cells(clock)
    yield lines
    set_clock_of_cells(time)


def test_call_that_takes_long_is_named_once(printed):
    (line,) = printed(calls=1, looks=6)
    assert line.startswith("waiting for step (pure, test_cell_barrier.py:")


def test_many_short_calls_are_not_named(printed):
    assert printed(calls=20, looks=1) == []
