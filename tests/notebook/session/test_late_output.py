"""Late output of a host function appears in the cell that ran it; how long a cell waits."""

import re

import pytest

from ._in_flight import SETUP, Cell

HOST = """
import logging, sys, warnings
from IPython.display import HTML, display
logging.getLogger().handlers[:] = [logging.StreamHandler(sys.stderr)]
def holds(x):
    assert threading.current_thread() is not threading.main_thread()
    print("inside", flush=True)
    forever({go!r})
    print("printed")
    logging.getLogger().warning("logged")
    warnings.warn("warned")
    display(HTML("<b>displayed</b>"))
    if os.path.exists({fail!r}):
        raise ValueError("no luck")
    return x
f = compiled(lambda x: jaxcb.pure_callback(holds, S, x))
g = jax.jit(lambda x: jaxcb.pure_callback(lambda x: (print("next"), x)[1], S, x))
"""


@pytest.fixture
def held(kernel, tmp_path):
    """A kernel in which ``f(slowly(big))`` prints and ends once the file `go` exists."""
    yield from holding(kernel, tmp_path)


@pytest.fixture
def freshly_held(fresh_kernel, tmp_path):
    """Like `held`, but in a new kernel, which has compiled no other program with callbacks."""
    kernel = fresh_kernel()
    assert kernel.run("%load_ext jupyter_jaxcb\nimport jax, jax.numpy as jnp").error is None
    yield from holding(kernel, tmp_path)


def holding(kernel, folder):
    kernel.go, kernel.fail = folder / "go", folder / "fail"
    assert kernel.run(SETUP + HOST.format(go=str(kernel.go), fail=str(kernel.fail))).error is None
    yield kernel
    kernel.go.touch()
    kernel.run("%jax_callbacks --wait 5")
    # Its names are deleted before the next test.
    while kernel.run("%jax_callbacks --stacks").text != "no host call is running\n":
        pass


def touched(path):
    return lambda: path.touch()


@pytest.mark.parametrize("wait", ["", ".block_until_ready()"])
def test_output_appears_in_the_cell_that_ran_the_program(held, wait):
    cell = Cell(held, f"y = f(slowly(big)){wait}", touched(held.go))
    for word in ("printed", "logged", "UserWarning: warned"):
        assert word in cell.text
    assert "late" not in cell.text
    assert {"text/html": "<b>displayed</b>"}.items() <= cell.shown[0].items()


CLOCK = """
from tests.interface import all_running_calls, set_clock_of_cells
class Clock:
    now = 0.0
    def monotonic(self):
        self.now += 0.05 * bool(all_running_calls())
        return self.now
    def __getattr__(self, name):
        return getattr(time, name)
set_clock_of_cells(Clock())
"""


@pytest.fixture
def clocked(held):
    """A kernel whose cells measure their wait with a clock that advances only during host calls.

    So a host call is running when the time is over, however slow the machine is.
    """
    assert held.run(CLOCK).error is None
    yield held
    held.run("set_clock_of_cells(time)")


@pytest.mark.long
def test_cell_stops_waiting_after_its_limit_and_names_the_running_calls(clocked):
    clocked.run("%jax_callbacks --wait 1.5")
    text = Cell(clocked, "y = f(slowly(big))", lambda: None).text
    call = r"holds \(pure, \[\d+\] line 29\), call 1, for "
    assert re.search(rf"waiting for {call}.*still running: {call}", text, re.DOTALL)
    assert "Host calls are still running after 1.5 s; their later output appears here" in text
    assert "%jax_callbacks --wait SECONDS" in text


def test_output_after_the_end_of_its_cell_appears_there_and_is_marked_once(held):
    held.run("%jax_callbacks --wait 0.01")
    first = held.client.execute("y = f(slowly(big))")
    messages = []
    while not any(kind == "status" and text == "idle" for kind, text, _ in messages):
        messages.append(_next_message(held))
    assert not any("printed" in text for _, text, _ in messages)
    second = held.client.execute("%jax_callbacks --wait 5\nz = g(y)\nz.block_until_ready()")
    held.go.touch()
    while not any(parent == second and text == "idle" for _, text, parent in messages):
        messages.append(_next_message(held))
    texts = {
        number: "".join(text for _, text, parent in messages if parent == number)
        for number in (first, second)
    }
    number = held.run("get_ipython().execution_count").value
    mark = f"[late: host call of In [{int(number) - 3}]]"  # the count is that of the next cell
    assert texts[first].count(mark) == 1
    assert texts[first].index(mark) < texts[first].index("printed")
    for word in ("printed", "logged", "UserWarning: warned", "<b>displayed</b>"):
        assert word in texts[first] and word not in texts[second]
    assert "next" in texts[second] and "next" not in texts[first]


def _next_message(kernel):
    message = kernel.client.get_iopub_msg(timeout=60)
    content = message["content"]
    text = content.get("text") or content.get("execution_state") or ""
    text += content.get("data", {}).get("text/html", "") if "data" in content else ""
    return message["msg_type"], text, message["parent_header"].get("msg_id")


def test_error_of_a_program_nobody_waits_for_appears_once_in_its_cell(held):
    held.fail.touch()
    cell = Cell(held, "y = f(slowly(big))", touched(held.go))
    assert cell.error["ename"] == "ValueError" and cell.error["evalue"] == "no luck"
    after = held.run("1 + 1")
    assert after.error is None and after.value == "2"


@pytest.mark.long
def test_cell_without_callbacks_does_not_wait(freshly_held):
    """It does not wait although a program has callbacks and an array is still being computed."""
    held = freshly_held
    held.run("%jax_callbacks --wait 50")
    held.run("from tests.interface import waits_of_cells; noting = waits_of_cells()")
    held.run("waited = noting.__enter__()")
    held.run("x = slowly(big)")
    assert held.run("waited").value == "[]"
    held.go.touch()
    held.run("y = f(slowly(big))")
    assert held.run("waited").value == "[1]"
    held.run("noting.__exit__(None, None, None)")


@pytest.mark.parametrize("given", ["soon", "-1", "nan", "inf"])
def test_invalid_seconds_are_refused(kernel, given):
    ran = kernel.run(f"%jax_callbacks --wait {given}")
    shown = ran.text + str(ran.error)
    assert f"not '{given}'" in shown and "--wait 5" in shown


def test_unloading_restores_the_output_streams(kernel):
    kind = "import sys; type(sys.stdout._parent_header).__name__"
    assert kernel.run(kind).value == "'_RoutedContext'"
    kernel.run("%unload_ext jupyter_jaxcb")
    assert kernel.run(kind).value == "'ContextVar'"
