"""What a cell prints while it waits for host calls."""

from types import SimpleNamespace

import pytest

from jupyter_jaxcb.notebook.session import _cell_barrier
from jupyter_jaxcb.notebook.session._cell_barrier import Barrier


@pytest.fixture
def printed(monkeypatch, capsys):
    """Return what a barrier prints if, every 0.4 s, the call with the next number is running."""

    def lines(numbers):
        now, running = [0.0], []

        def wait(seconds, poll):
            for number in numbers:
                now[0] += 0.4
                running[:] = [SimpleNamespace(host=None, number=number)]
                poll()
            return True

        clock = SimpleNamespace(monotonic=lambda: now[0])
        monkeypatch.setattr(_cell_barrier, "time", clock)
        monkeypatch.setattr(_cell_barrier, "all_running_calls", lambda: running)
        monkeypatch.setattr(_cell_barrier, "running_line", lambda call, now: f"call {call.number}")
        Barrier(clock=lambda: 0).wait(SimpleNamespace(wait=wait), SimpleNamespace(pressed=False))
        return capsys.readouterr().err.splitlines()

    return lines


def test_call_that_takes_long_is_named_once(printed):
    assert printed([1, 1, 1, 1, 1, 1]) == ["waiting for call 1"]


def test_many_short_calls_are_not_named(printed):
    assert printed(range(20)) == []
