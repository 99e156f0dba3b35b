"""A cell whose host calls do not return says so by itself, until they do."""

import os
import re

import pytest

from ._stuck import AT_ONCE, HOSTS, ON_TWO_DEVICES, Running

pytestmark = pytest.mark.slow
LOAD = "%load_ext jupyter_jaxcb\n%jax_callbacks --stacks-after 1\n"


@pytest.fixture
def prepared(fresh_kernel, tmp_path):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(f"{LOAD}{HOSTS}\npipe = {str(tmp_path / 'go')!r}").text == ""
    return kernel


def test_live_view_of_a_deadlock_says_what_waits_and_its_recording_is_kept(prepared, tmp_path):
    prepared.run(AT_ONCE)
    cell = Running(prepared, "run(transmission)", cell="cell-a")
    told = cell.told()
    head = r"No host call has returned for \d+ s\. This looks like a deadlock\."
    assert re.fullmatch(head, told["title"])
    assert told["text"].startswith("transmission (pure, line ")
    call, _, main = told["stacks"].partition("main thread\n")
    assert "\n    [1] line 30, in transmission: return np.asarray(results[0])\n" in call
    assert main.startswith("    [3] line 1, in <module>: run(transmission)\n    [1] line ")
    assert cell.text == "inside\n"  # nothing is printed
    prepared.restart()
    (kept,) = tmp_path.glob("jupyter_jaxcb-*/*")
    assert f"jaxcb.load({str(kept)!r})" in prepared.run(LOAD).text


def test_live_view_of_an_endless_loop_in_a_program_says_so(prepared):
    cell = Running(prepared, "endless(jaxcb.pure_callback(begins_a_loop, S, 0.0))", cell="cell-a")
    told = cell.told()
    assert told["title"].endswith("This looks like a long or endless loop in a compiled program.")
    assert " and the process computes. The last was call 1 of " in told["text"]


def test_live_view_names_the_worker_process_that_a_call_is_in(prepared, tmp_path):
    os.mkfifo(tmp_path / "go")
    cell = Running(prepared, "run(waits_in_c, in_a_process)", cell="cell-a")
    said = r"waits_in_c .*: its worker process \(pid \d+\) is still in it\."
    while not re.search(said, (told := cell.told())["text"]):
        pass  # the worker had not started
    assert re.match(r"waits_in_c .*, on pid \d+\n    in its worker process\n", told["stacks"])
    os.close(os.open(tmp_path / "go", os.O_WRONLY))
    assert prepared.client.get_shell_msg(timeout=60)["content"]["status"] == "ok"


def test_live_view_says_that_devices_wait_for_one_that_failed(fresh_kernel, tmp_path):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(f"{ON_TWO_DEVICES}{LOAD}{HOSTS}").text == ""
    cell = Running(kernel, "np.asarray(summed(np.arange(2, dtype=np.float32)))", cell="cell-a")
    told = cell.told()
    assert told["title"].endswith("This looks like a collective operation that waits for a device.")
    assert "the main thread waits inside JAX at line 1, 'np.asarray(summed(" in told["text"]
    assert "A device that has failed, or has not begun, lets the others wait" in told["text"]


@pytest.mark.long
def test_notice_goes_when_calls_go_on_and_comes_again(prepared, tmp_path):
    """The cell waits outside of host calls between the two, or the view may show only the last."""
    host = "jaxcb.pure_callback(waits_at_the_second_and_the_tenth, S, x)"
    prepared.run(f"program = compiled(lambda x: {host})")
    cell = Running(
        prepared,
        "for n in range(12):\n    if n == 9:\n        forever(pipe)\n    program(1.0)",
        cell="cell-a",
    )
    for number in (2, 10):
        told = cell.told()
        assert f"inside {number}\n" in cell.text
        assert "'time.sleep(0.01)', and uses no processor time" in told["text"]
        assert list(tmp_path.glob("jupyter_jaxcb-*/*"))
        (tmp_path / f"go.{number}").touch()
        if number == 2:
            cell.told(anything=False)
            (tmp_path / "go").touch()
    assert prepared.client.get_shell_msg(timeout=60)["content"]["status"] == "ok"
    assert not list(tmp_path.glob("jupyter_jaxcb-*/*"))


@pytest.mark.long
def test_terminal_prints_it(terminal, tmp_path):
    released = """
class Releases:
    flush = sys.stderr.flush
    def write(self, text):
        if "No host call has returned" in text:
            open(pipe + ".2", "w").close()
        return sys.__stderr__.write(text)
sys.stderr = Releases()
for n in range(3):
    y = jaxcb.pure_callback(waits_at_the_second_and_the_tenth, S, 1.0)"""
    text = terminal(f"{LOAD}{HOSTS}\npipe = {str(tmp_path / 'go')!r}", released)
    assert text.count("No host call has returned for ") == 1
    assert "waits_at_the_second_and_the_tenth (pure, line " in text


@pytest.mark.parametrize("given", ["soon", "0", "nan", "inf"])
def test_invalid_seconds_are_refused(kernel, given):
    ran = kernel.run(f"%jax_callbacks --stacks-after {given}")
    shown = ran.text + str(ran.error)
    assert f"not '{given}'" in shown and "--stacks-after 30" in shown
    assert kernel.run("%jax_callbacks --stacks-after off").error is None
