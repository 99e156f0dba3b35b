"""Host calls of a thread that an earlier cell started: the next cell records and marks them."""

import pytest

from tests._site_schema import complete

from ..conftest import MIME

# The thread makes a call for each turn that a cell gives it.
SETUP = """import threading
turn, done = threading.Semaphore(0), threading.Semaphore(0)
def take(count):
    for _ in range(count):
        turn.release()
        assert done.acquire(timeout=60)
%%jax_callback pure --result x
def step(x):
    return x"""
WORK = """program = jax.jit(lambda x: step(x))
def work():
    while turn.acquire():
        program(1.0).block_until_ready()
        done.release()
background = threading.Thread(target=work, name={name!r}, daemon=True)
background.start()
take(3)"""


class Ran:
    """A cell that ran, with its id: its host traces and the last message for badges."""

    def __init__(self, kernel, code, cell, seen=lambda panel: None):
        self.traces, self.panels, self.number = [], [], None

        def receive(message):
            content = message["content"]
            data = content.get("data", {})
            if data.get("type") == "snapshot":
                self.panels.append(data)
                seen(data)
            if message["msg_type"] == "execute_input":
                self.number = content["execution_count"]
            if MIME in data:
                self.traces.append((data[MIME], content["metadata"][MIME]))
            assert message["msg_type"] != "error", content["traceback"]

        kernel.run_cell(code, cell, receive)

    def figures(self):
        """Return the figures of each site of the host trace, with its number of calls."""
        ((facts, measured),) = self.traces
        sites = zip(facts["sites"], measured["sites"], strict=True)
        return [(complete(one)["calls"], own.get("figures", [])) for one, own in sites]

    def badge(self, cell):
        """Return calls and figures of the only badge of a cell, as it is at the end."""
        (site,) = (one for one in self.panels[-1]["sites"] if one["cell_id"] == cell)
        return site["calls"], site["figures"]

    def figures_while_running(self, cell):
        """Return what the only badge of a cell said beside its calls while this cell ran."""
        panels = [one["sites"] for one in self.panels if one["running"] and one["sites"]]
        return [one["figures"] for sites in panels for one in sites if one["cell_id"] == cell]


@pytest.fixture
def cells(kernel):
    setup, magic = SETUP.split("%%jax", 1)
    kernel.run(setup)
    kernel.run("%%jax" + magic)
    return lambda code, cell, *seen: Ran(kernel, code, cell, *seen)


@pytest.mark.kept
def test_calls_of_a_thread_of_an_earlier_cell_say_where_it_was_started(cells):
    first = cells(WORK.format(name="pacemaker"), "cell-a")
    assert first.figures() == [(3, [])]
    assert first.badge("cell-a") == (3, [])
    second = cells("take(2)", "cell-b")
    started = f"started in [{first.number}]"
    assert second.figures() == [(2, [[f"2 calls on a thread {started}", False]])]
    ((_, measured),) = second.traces
    assert f"pacemaker, {started}" in measured["threads"]
    # The badge in the first cell has the calls of this run, and says so.
    of_run = [[f"2 calls on a thread {started}", False], [f"in [{second.number}]", True]]
    assert second.badge("cell-a") == (2, of_run)
    third = cells("program(1.0)\ntake(4)", "cell-c")
    assert third.figures() == [(5, [[f"4 calls on a thread {started}", False]])]


@pytest.mark.kept
def test_badge_says_which_run_it_shows_unless_it_is_that_of_its_cell(cells):
    code = "program = jax.jit(lambda x: step(x))\nfor n in range(3): program(1.0)"
    first = cells(code, "cell-a")
    assert first.badge("cell-a") == (3, [])
    second = cells("program(1.0)", "cell-b")
    assert second.figures() == [(1, [])]
    assert second.badge("cell-a") == (1, [[f"in [{second.number}]", True]])
    again = cells(code, "cell-a")
    assert again.badge("cell-a") == (3, [])
    nothing = cells("program = None", "cell-b")
    assert nothing.badge("cell-a") == (3, [])


@pytest.mark.kept
def test_badge_says_that_it_shows_the_run_of_another_cell_that_is_running(cells, tmp_path):
    path = tmp_path / "go"
    cells("program = jax.jit(lambda x: step(x))\nprogram(1.0)", "cell-a")
    code = f"import os\nwhile not os.path.exists({str(path)!r}):\n    program(1.0)"
    ran = cells(code, "cell-b", lambda panel: path.touch() if panel["running"] else None)
    assert [["in [*]", True]] in ran.figures_while_running("cell-a")
    assert ran.badge("cell-a")[1] == [[f"in [{ran.number}]", True]]


@pytest.mark.kept
def test_threads_with_a_common_name_are_not_mixed_up(cells):
    cells(WORK.format(name="worker"), "cell-a")
    code = """take(1)
other = threading.Thread(target=lambda: program(1.0).block_until_ready(), name="worker")
other.start()
other.join()"""
    assert cells(code, "cell-b").figures() == [(2, [])]


@pytest.mark.kept
def test_workers_of_an_executor_are_not_marked_though_an_earlier_cell_started_them(cells):
    code = """import numpy as np
slow = jaxcb.pure(lambda x: x, result="x", executor="threads:2")
y = jax.vmap(slow)(jnp.arange(4.0)).block_until_ready()"""
    cells("import jupyter_jaxcb as jaxcb\n" + code, "cell-a")
    again = cells("y = jax.vmap(slow)(jnp.arange(4.0)).block_until_ready()", "cell-b")
    assert again.figures() == [(4, [])]


CROSSING = """go, inside = threading.Event(), threading.Event()
def wait(x):
    inside.set()
    assert go.wait(60)
    return x
import jax, jupyter_jaxcb as jaxcb
waits = jaxcb.pure(wait, result="x")
slow = jax.jit(lambda x: waits(step(x) + 1))
background = threading.Thread(target=lambda: slow(1.0).block_until_ready(), daemon=True)
background.start()
assert inside.wait(60)"""


@pytest.mark.kept
def test_cell_that_joins_a_thread_has_the_call_that_began_in_the_cell_before(cells):
    first = cells(CROSSING, "cell-a")
    assert [calls for calls, _ in first.figures()] == [0, 1]
    second = cells("go.set()\nbackground.join()", "cell-b")
    ((facts, _),) = second.traces
    waits, step = (complete(one) for one in facts["sites"])
    assert (waits["calls"], waits["status"]) == (1, "kept")
    assert (step["calls"], step["status"]) == (0, "unknown")
    assert "only a part of a run" in step["reason"]
