"""Ctrl-C in a script whose main thread is stuck: what hangs is named, and one can leave."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import host_function_can_block

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("hanging.py")
# With JAX 0.12, asynchronous dispatch is not the cause.
WAY_OUT = r" Use NumPy instead, or call jax\.config\.update" if host_function_can_block() else ""
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "troubleshoot-hangs.md"


def sample_of_the_guide():
    """Return a pattern for what the guide's sample says, with the names of the program here."""
    (block,) = re.findall(
        r"^transmission \(pure, photonics.*?(?=^```)", GUIDE.read_text("utf-8"), re.M | re.S
    )
    said = " ".join(block.split()).partition(" s: ")[2].partition(" Use NumPy")[0]
    pattern = (
        re.escape(said)
        .replace(r"\ ", " ")
        .replace(re.escape("photonics.py:11"), r"hanging\.py:\d+")
    )
    return pattern.replace(re.escape("norm(m)"), re.escape("RESULTS[0]"))


# Host functions that no exception ends: what is said of each.
STUCK = {
    "waits_for_its_program": r"it is inside JAX at hanging\.py:\d+, "
    r"'RESULTS\[0\]\.block_until_ready\(\)', and nothing "
    rf"computes, .* a deadlock\.{WAY_OUT}",
    "converts_the_result_of_its_program": sample_of_the_guide(),
    "uses_jnp": r"it is inside JAX at hanging\.py:\d+, "
    r"'return np\.asarray\(jnp\.sin\(RESULTS\[0\]\)\)', and nothing computes, .* a deadlock\.",
    "calls_a_jitted_global": r"it is inside JAX at hanging\.py:\d+, "
    r"'return np\.asarray\(DOUBLED\(RESULTS\[0\]\)\)', and nothing computes, .* a deadlock\.",
    "computes_in_c": r"it computes at hanging\.py:\d+, 'hashlib\.pbkdf2_hmac\(",
    "waits_for_a_lock": r"it waits at hanging\.py:\d+, 'with LOCK:', and uses no processor time",
    "is_in_c": r"it waits at hanging\.py:\d+, 'ctypes\.CDLL\(None\)\.sleep\(1000\)', and uses no",
    "ignores_exceptions": r"it waits at hanging\.py:\d+, ",
    "waits_for_another_callback": r"it (is inside JAX at hanging\.py:\d+, "
    r"'return np\.asarray\(OTHER\(x\)\)', and waits for a program, perhaps that of|waits for) "
    r"is_called_by_a_host_function\.",
}


class Script:
    """A script that runs under the command, or without it."""

    def __init__(self, folder, cores, *arguments):
        run = ["-m", "jupyter_jaxcb", "run", "-o", "run.jaxcb"]
        run += ["--stacks-after", "1"] if "stacks after" in arguments else []
        run *= "in plain Python" not in arguments
        command = [sys.executable, *run, str(PROGRAM)]
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [*command, str(cores), *arguments],
            env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
            cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self.text = ""
        self._deadline = threading.Timer(120, self.kill)
        self._deadline.start()

    def kill(self):
        """Kill it and its workers, if there are any left."""
        self._deadline.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def read_until(self, words, times=1):
        while self.text.count(words) < times:
            line = self.process.stdout.readline()
            assert line, self.text
            self.text += line

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self):
        rest, _ = self.process.communicate(timeout=60)
        self.text += rest
        return self.process.returncode


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(*arguments, cores=2):
        script = Script(tmp_path, cores, *arguments)
        started.append(script)
        script.read_until("inside")
        return script

    yield begin
    for script in started:
        script.kill()
        script.process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("api", ["jax", "jupyter_jaxcb"])
@pytest.mark.parametrize("name", STUCK)
def test_first_ctrl_c_says_what_hangs_and_second_one_leaves_with_a_report(
    start, tmp_path, name, api, cores
):
    script = start(name, api, cores=cores)
    script.interrupt()
    script.read_until("Press Ctrl-C again to leave.")
    flavor = "jax pure" if api == "jax" else "pure"
    head = rf"{name} \({flavor}, hanging\.py:\d+\) has not returned for [\d.]+ s: "
    assert re.search(head + STUCK[name], script.text), script.text
    deadlock = api == "jax" and "a deadlock" in STUCK[name] and host_function_can_block()
    assert ("pass JAX arrays: convert them with np.asarray first." in script.text) == deadlock
    script.interrupt()
    assert script.end() == 130
    assert f"line {line_of(name)}, in {name}" in script.text  # the stacks of all threads
    recording = jaxcb.load(tmp_path / "run.jaxcb")
    running = {recording.lowered[one.lowered].site.function for one in recording.running}
    assert running - {"is_called_by_a_host_function"} == {name}


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("name", STUCK)
def test_watchdog_of_a_plain_script_says_what_hangs_and_second_ctrl_c_leaves(start, name, cores):
    script = start(name, "jupyter_jaxcb", "in plain Python", "at once", cores=cores)
    head = rf"{name} \(pure, hanging\.py:\d+\) has not returned: "
    script.read_until("No host call has begun or returned for")
    script.interrupt()
    script.read_until("Press Ctrl-C again to leave.")
    told, _, asked = script.text.partition("MainThread:")
    said = STUCK[name]
    if name == "waits_for_another_callback":  # nobody observes it
        said = r"it waits at hanging\.py:\d+, 'with LOCK:', and uses no processor time"
    assert all(re.search(head + said, text) for text in (told, asked)), script.text
    script.interrupt()
    assert script.end() == 130


@pytest.mark.kept
@pytest.mark.parametrize(
    ("name", "api"),
    [
        *((name, "jupyter_jaxcb") for name, said in STUCK.items() if "a deadlock" in said),
        ("waits_for_the_program_behind_its_queue", "queue"),
    ],
)
def test_deadlock_that_is_certain_is_told_long_before_the_hour_of_the_watchdog(start, name, api):
    script = start(name, api, "in plain Python")
    script.read_until("No host call has begun or returned for")
    script.read_until("a deadlock")


@pytest.mark.parametrize("how", ["under the command", "in plain Python"])
@pytest.mark.parametrize(
    ("name", "api", "said"),
    [
        (
            "waits_for_a_server",
            "threads of the user",
            r"it waits at hanging\.py:\d+, 'connection\.recv\(1\)', and uses no processor time",
        ),
        (
            "waits_for_a_server_in_threads",
            "jupyter_jaxcb",
            r"it waits at hanging\.py:\d+, 'with ThreadPoolExecutor\(2\) as pool:', and uses no",
        ),
    ],
)
def test_call_that_outlives_a_ctrl_c_handled_by_the_main_thread_is_named_and_second_one_leaves(
    start, name, api, said, how
):
    """The pool of the user waits at its end for the threads, also after the KeyboardInterrupt."""
    script = start(name, api, how, "in Python")
    script.read_until("inside", times=2)
    script.interrupt()
    script.read_until("Press Ctrl-C again to leave.")
    head = rf"{name} \(pure, hanging\.py:\d+\) has not returned( for [\d.]+ s)?: "
    assert re.search(f"{head}{said}.*\n\nThis cannot be ended from outside", script.text), (
        script.text
    )
    assert "Traceback" not in script.text
    script.interrupt()
    assert script.end() == 130
    assert script.text.count("Press Ctrl-C again") == 1


@pytest.mark.parametrize("how", ["in Python", "in C++"])
def test_endless_loop_of_a_program_is_told_with_the_last_call_and_reported(start, how):
    """A program whose argument is not computed yet runs on a thread of XLA, others on this one."""
    script = start("begins_a_loop", "loop", "stacks after", how)
    script.read_until("No host call has begun or returned for")
    script.interrupt()
    script.read_until("Press Ctrl-C again to leave.")
    told, _, asked = script.text.partition("MainThread:")
    said = (
        r"no host call is running: the main thread is at hanging\.py:\d+, '.*program\(.*', and the "
        r"process computes\. The last was call 1 of begins_a_loop \(pure, hanging\.py:\d+\)\. This "
        "may be a long or endless loop in the compiled program"
    )
    if how == "in C++":
        said = said.replace("program", "np.asarray", 1)
    assert all(re.search(said, text) for text in (told, asked)), script.text
    assert "The program ends at its next host call, or when it is done." in asked
    script.interrupt()
    assert script.end() == 130
    assert script.text.count("/jax/_src/") <= 2 and "/runpy" not in script.text
    assert re.search(r"^begins_a_loop 1 call", script.text, re.MULTILINE), script.text


@pytest.mark.parametrize("cores", [1, 2])
def test_queue_that_is_full_for_ever_is_named_and_ctrl_c_ends_the_program(start, cores):
    script = start("waits_for_the_program_behind_its_queue", "queue", cores=cores)
    script.interrupt()
    assert script.end() == -signal.SIGINT
    assert re.search(
        r"waits_for_the_program_behind_its_queue \(debug, hanging\.py:\d+\) has not returned for "
        r"[\d.]+ s: it is inside JAX at hanging\.py:\d+, 'RESULTS\[0\]\.block_until_ready\(\)', "
        "and waits for a program that waits for it, because the queue is full: a deadlock",
        script.text,
    ), script.text


@pytest.mark.parametrize("cores", [1, 2])
def test_devices_that_wait_for_one_that_failed_are_named_and_second_ctrl_c_leaves(start, cores):
    said = "A device that has failed, or has not begun, lets the others wait in a collective"
    script = start("fails_on_one_device", "shards", "watched", cores=cores)
    script.read_until(said)
    assert re.search(r"the main thread waits inside JAX at hanging.py:\d+, ", script.text)
    for how in ("under the command", "in plain Python"):
        script = start("fails_on_one_device", "shards", how, cores=cores)
        script.interrupt()
        script.read_until("Press Ctrl-C again to leave.")
        assert f"A program over several devices has not ended. {said}" in script.text
        script.interrupt()
        assert script.end() == -signal.SIGINT


def line_of(name):
    """Return the line at which the host function `name` stops."""
    lines = PROGRAM.read_text().splitlines()
    begun = lines.index(f"def {name}(x):")
    stops = {"ignores_exceptions": "time.sleep(0.05)", "waits_for_a_lock": "with LOCK:",
             "is_in_c": "sleep(1000)", "computes_in_c": "pbkdf2_hmac",
             "waits_for_another_callback": "OTHER(x)"}  # fmt: skip
    wanted = stops.get(name, "RESULTS[0]")
    return 1 + next(n for n in range(begun, len(lines)) if wanted in lines[n])


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("api", ["jax", "jupyter_jaxcb"])
def test_first_ctrl_c_ends_a_host_function_in_python_on_a_thread_of_xla(start, api, cores):
    script = start("loops", api, cores=cores)
    script.interrupt()
    assert script.end() not in (0, 130)
    assert "it computes at hanging.py" in script.text
    assert "Press Ctrl-C again" not in script.text
    assert "KeyboardInterrupt" in script.text


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("name", "executor", "said"),
    [
        ("loops", "threads", r"it computes at hanging\.py:\d+, "),
        ("loops", "processes", r"its worker process \(pid \d+\) is still in it\."),
        ("is_in_c", "processes", r"its worker process \(pid \d+\) is still in it\."),
    ],
)
def test_first_ctrl_c_ends_the_workers_of_an_executor(start, name, executor, said, cores):
    script = start(name, executor, cores=cores)
    script.interrupt()
    assert script.end() == -signal.SIGINT
    assert re.search(
        rf"{name} \(pure, hanging\.py:\d+\) has not returned for .*: {said}", script.text
    )


@pytest.mark.long
def test_worker_thread_in_c_is_named_and_second_ctrl_c_leaves(start):
    script = start("is_in_c", "threads")
    script.interrupt()
    script.read_until("Python waits for it before it ends. Press Ctrl-C again to leave.")
    assert len(re.findall(rf"is_in_c .*: {STUCK['is_in_c']}", script.text)) == 2, script.text
    script.interrupt()
    assert script.end() == -signal.SIGINT


def test_call_that_a_worker_is_in_after_ctrl_c_is_reported_as_running(start, tmp_path):
    """Python 3.11 looped forever here, where the interrupted main thread called a function."""
    script = start("is_in_c", "threads", "in Python")
    script.interrupt()
    script.read_until("Python waits for it before it ends. Press Ctrl-C again to leave.")
    assert "This cannot be ended" not in script.text
    assert re.search(r"call 1 was still running when .*, in is_in_c, hanging\.py:\d+", script.text)
    assert not re.search(r"called\(x\).*not run", script.text)
    assert re.search(rf"is_in_c .*: {STUCK['is_in_c']}", script.text), script.text
    (running,) = jaxcb.load(tmp_path / "run.jaxcb").running
    assert (running.number, running.stack[0].function) == (1, "is_in_c")
    script.interrupt()
    assert script.end() == -signal.SIGINT


def test_call_of_machine_code_that_does_not_return_is_named_and_reported_as_running(
    start, tmp_path
):
    script = start("loops_in_machine_code", "numba", "in Python")
    script.interrupt()
    script.read_until("Press Ctrl-C again to leave.")
    said = r"loops_in_machine_code \(pure, hanging\.py:\d+\) has not returned for [\d.]+ s: "
    assert re.search(said + "it computes in machine code, which nothing can", script.text)
    script.interrupt()
    assert script.end() == 130
    assert "call 1 was still running when the recording ended" in script.text
    (running,) = jaxcb.load(tmp_path / "run.jaxcb").running
    assert (running.number, running.thread) == (1, "compiled code")


def test_script_that_ctrl_c_ends_says_which_call_python_still_waits_for(start):
    script = start("is_in_c", "jupyter_jaxcb", "for signals too")
    script.interrupt()
    script.read_until("Python waits for it before it ends. Press Ctrl-C again to leave.")
    assert re.search(STUCK["is_in_c"], script.text), script.text
    script.interrupt()
    assert script.end() == -signal.SIGINT
