"""Queued calls in notebook cells: the cell waits, and each output and error reaches its cell."""

import pytest

from ._in_flight import SETUP, Cell

REGISTER = """%%jax_callback debug --queued
def log(i):
    if i == 0:
        forever({go!r})
    if i >= failing:
        raise ValueError(f"no luck with {{i}}")
    print("got", int(i))
"""
RUN = """
failing = {failing}
run = jax.jit(lambda: jax.lax.fori_loop(0, 5, lambda i, y: (log(i), y)[1], 0))
"""


@pytest.fixture
def held(kernel, tmp_path):
    """A kernel in which ``run()`` queues five calls; the first runs until the file `go` exists."""
    kernel.go = tmp_path / "go"
    assert kernel.run(SETUP).error is None
    assert kernel.run(REGISTER.format(go=str(kernel.go))).error is None
    assert kernel.run(RUN.format(failing=9)).error is None
    yield kernel
    kernel.go.touch()
    kernel.run("%jax_callbacks --wait 5")
    while "waiting" in kernel.run("%jax_callbacks --stacks").text:
        pass


def test_cell_waits_for_its_queued_calls_and_counts_them(held):
    held.go.touch()
    ran = held.run("run();")
    assert [line for line in ran.text.splitlines() if line.startswith("got")] == [
        f"got {number}" for number in range(5)
    ]
    (site,) = ran.sites
    assert (site["status"], site["calls"], site["expected"]) == ("kept", 5, 5)
    assert "queued: the program does not wait for its calls" in site["notes"]


def test_error_of_a_queued_call_is_shown_once_in_its_cell(held):
    held.go.touch()
    ran = held.run("failing = 3\nrun();")
    assert ran.error[:2] == ("ValueError", "no luck with 3")
    assert "queued calls that failed after it: 1" in ran.error[2]
    assert "got 2" in ran.text
    after = held.run("1 + 1")
    assert (after.error, after.value) == (None, "2")


def test_cell_that_stops_waiting_says_how_many_calls_are_left(held):
    held.run("%jax_callbacks --wait 0.01")
    ran = held.run("run();")
    assert "4 queued calls (log 4) are left after 0.01 s" in ran.text
    assert "jaxcb.drop_queued() drops them" in ran.text
    (site,) = ran.sites
    assert "5 calls still queued or running when the recording ended" in site["notes"]
    assert site["status"] == "kept"
    text = held.run("%jax_callbacks --stacks").text
    assert "log (debug, " in text
    assert "waiting: 4 queued calls (log 4)" in text
    assert held.run("jaxcb.drop_queued()").value == "4"


def test_late_queued_output_appears_in_its_cell_and_its_error_names_the_cell(held):
    held.run("%jax_callbacks --wait 0.01\nfailing = 4")
    messages = []

    def receive(message):
        content = message["content"]
        text = content.get("text") or content.get("execution_state") or content.get("ename") or ""
        messages.append((text, message["parent_header"].get("msg_id"), str(content)))

    first = held.client.execute("run(); number = len(In) - 1")
    while ("idle", first) not in [pair[:2] for pair in messages]:
        receive(held.client.get_iopub_msg(timeout=60))
    second = held.client.execute("%jax_callbacks --wait 60")
    held.go.touch()
    while ("idle", second) not in [pair[:2] for pair in messages]:
        receive(held.client.get_iopub_msg(timeout=60))
    texts = {
        number: "".join(text for text, parent, _ in messages if parent == number)
        for number in (first, second)
    }
    assert texts[first].count("[late: host call of In [") == 1
    assert "got 3" in texts[first]
    assert "got" not in texts[second]
    (error,) = [content for text, _, content in messages if text == "ValueError"]
    number = held.run("number").value
    assert f"late: a host call of In [{number}]" in error
    assert f"[late: host call of In [{number}]]" in texts[first]


@pytest.mark.long
def test_stop_button_drops_what_the_cell_waits_for_and_says_how_many(held):
    held.run("%jax_callbacks --wait 60")
    stop = held.manager.interrupt_kernel
    cell = Cell(held, "for _ in range(2): run()", stop, "the stop button drops them")
    assert "waiting for 9 queued calls (log 9)" in cell.text
    assert "interrupted; dropped 9 queued calls (log 9)" in cell.text
    assert "got" not in cell.text


def test_stop_button_during_the_program_still_makes_the_queued_calls(held):
    held.go.touch()
    code = "run()\nprint('looping', flush=True)\nwhile True: pass"
    cell = Cell(held, code, held.manager.interrupt_kernel, "looping")
    assert cell.reply["ename"] == "KeyboardInterrupt"
    assert "got 4" in cell.text
    assert "dropped" not in cell.text
