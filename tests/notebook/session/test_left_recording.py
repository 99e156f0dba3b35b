"""A cell that Stop cannot end says so, and the next kernel of the notebook has its recording."""

import os
import re
import stat

import pytest

from tests.interface import host_function_can_block

from ._stuck import HOSTS, IN_MACHINE_CODE, Running

pytestmark = pytest.mark.slow
LOAD = "%load_ext jupyter_jaxcb\n"


@pytest.fixture
def stuck(fresh_kernel, tmp_path):
    """A kernel with a cell that waits for itself."""
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(LOAD + HOSTS).text == ""
    cell = Running(kernel, "run(transmission)")
    cell.read_until("inside")
    return cell


def test_stop_says_what_a_stuck_kernel_waits_for_and_the_next_one_has_its_recording(
    stuck, tmp_path
):
    kernel = stuck.kernel
    kernel.manager.interrupt_kernel()
    text = stuck.read_until("will offer its recording so far.\n")
    said = re.escape("it is inside JAX at line 29, 'return np.asarray(results[0])', and nothing")
    head = r"^transmission \(pure, line \d+\) has not returned for [\d.]+ s: "
    assert re.search(f"{head}{said} computes, .* a deadlock", text, re.MULTILINE), text
    assert "This cannot be ended from outside. Restart the kernel." in text
    (kept,) = tmp_path.glob("jupyter_jaxcb-*/*")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (kept.parent, kept)] == [0o700, 0o600]
    kernel.restart()
    offered = kernel.run(LOAD).text
    assert offered.count("\n") == 1 and f"jaxcb.load({str(kept)!r})" in offered
    loaded = kernel.run(
        f"import jupyter_jaxcb as jaxcb\nrecording = jaxcb.load({str(kept)!r})\n"
        "[recording.lowered[one.lowered].site.function for one in recording.running]"
    )
    assert loaded.value == "['transmission']"
    kernel.manager.shutdown_kernel()
    assert not kept.exists()


@pytest.mark.long
def test_stop_explains_a_deadlock_in_a_callback_of_jax_that_nobody_observes(fresh_kernel, tmp_path):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(LOAD + HOSTS).text == ""
    cell = Running(kernel, "run(transmission, jax.pure_callback)")
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    text = cell.read_until("Restart the kernel.")
    head = "A host function of JAX's own callbacks has not returned: it is inside JAX at line 29, "
    assert head in text and "a deadlock." in text
    assert ("a deadlock. Use NumPy" in text) == host_function_can_block()


def test_stop_explains_an_endless_loop_of_a_program_and_its_recording_is_kept(
    fresh_kernel, tmp_path
):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(LOAD + HOSTS).text == ""
    cell = Running(kernel, "endless(jaxcb.pure_callback(begins_a_loop, S, 0.0))")
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    text = cell.read_until("will offer its recording so far.\n")
    said = "no host call is running: the main thread is at line 1, 'endless(jaxcb.pure_callback("
    assert said in text
    assert "and the process computes. The last was call 1 of <lambda> (debug, line " in text
    assert (
        "ends at its next host call, or when it is done. To leave now, restart the kernel." in text
    )
    assert len(list(tmp_path.glob("jupyter_jaxcb-*/*"))) == 1


def test_stop_says_nothing_of_a_long_computation_outside_of_jax(fresh_kernel, tmp_path):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(LOAD + HOSTS).text == ""
    says = "threading.Thread(target=say_inside, daemon=True).start()"
    cell = Running(kernel, f"import ctypes\n{says}\nctypes.CDLL(None).usleep(4_000_000)\n1 + 1")
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    reply = kernel.client.get_shell_msg(timeout=60)
    assert reply["content"]["status"] == "error"
    assert kernel.run("1 + 1").value == "2"
    assert cell.text == "inside\n"


@pytest.mark.long
def test_stop_ends_a_host_function_in_python_while_the_main_thread_cannot_handle_it(
    fresh_kernel, tmp_path
):
    kernel = fresh_kernel(tmp_path)
    assert kernel.run(LOAD + HOSTS).text == ""
    cell = Running(kernel, "run(loops)")
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    said = cell.read_until("it computes at line")
    assert kernel.client.get_shell_msg(timeout=60)["content"]["ename"] == "KeyboardInterrupt"
    assert "Restart" not in said and not list(tmp_path.glob("jupyter_jaxcb-*/*"))
    assert kernel.run("1 + 1").value == "2"


def on_cores(kernel, cores):
    """Prepare a kernel, all of whose threads use that many cores."""
    use = "os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))"
    assert kernel.run(f"import os\n{use}[:{cores}])").text == ""
    assert kernel.run(LOAD + HOSTS).text == ""


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("with lock: run(waits_for_a_lock)", "it waits at line {}, 'with lock:', and uses no "),
        ("run(ignores_exceptions)", "it waits at line {}, "),
        ("run(uses_jnp)", "it is inside JAX at line {}, 'return np.asarray(jnp.sin(results[0]))'"),
        (
            "run(calls_a_jitted_global)",
            "it is inside JAX at line {}, 'return np.asarray(doubled(results[0]))', and nothing",
        ),
        (
            "with lock: run(waits_for_another_callback)",
            "it waits at line {}, 'with lock:', and uses no processor time",
        ),
        (IN_MACHINE_CODE, "it computes in machine code, which nothing can interrupt"),
    ],
)
def test_stop_names_the_line_of_each_call_that_cannot_be_ended(
    fresh_kernel, tmp_path, cell, said, cores
):
    kernel = fresh_kernel(tmp_path)
    on_cores(kernel, cores)
    cell = Running(kernel, cell)
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    text = cell.read_until("This cannot be ended from outside. Restart the kernel.")
    wanted = re.escape(said).replace(r"\{\}", r"\d+")
    assert re.search(rf"\(pure, line \d+\) has not returned for [\d.]+ s: {wanted}", text), text


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("run(waits_behind_its_queue, queued_often)", "because the queue is full: a deadlock"),
        ("run(waits_in_c, in_a_thread)", "it waits at line 36, 'os.close(os.open(pipe, "),
    ],
)
def test_stop_ends_a_cell_that_waits_for_a_full_queue_or_for_a_worker(
    fresh_kernel, tmp_path, cell, said, cores
):
    kernel = fresh_kernel(tmp_path)
    on_cores(kernel, cores)
    os.mkfifo(tmp_path / "pipe")
    assert kernel.run(f"pipe = {str(tmp_path / 'pipe')!r}").text == ""
    cell = Running(kernel, cell)
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    assert "Restart" not in cell.read_until(said)
    assert kernel.client.get_shell_msg(timeout=60)["content"]["ename"] == "KeyboardInterrupt"
    assert kernel.run("1 + 1").value == "2"


@pytest.mark.long
def test_recording_of_a_cell_that_ends_after_all_is_removed(fresh_kernel, tmp_path):
    kernel = fresh_kernel(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert kernel.run(f"{LOAD}{HOSTS}\npipe = {str(tmp_path / 'pipe')!r}").text == ""
    cell = Running(kernel, "run(waits_in_c)")
    cell.read_until("inside")
    kernel.manager.interrupt_kernel()
    cell.read_until("will offer its recording so far.\n")
    assert list(tmp_path.glob("jupyter_jaxcb-*/*"))
    os.close(os.open(tmp_path / "pipe", os.O_WRONLY))
    assert kernel.client.get_shell_msg(timeout=60)["content"]["ename"] == "KeyboardInterrupt"
    assert not list(tmp_path.glob("jupyter_jaxcb-*/*"))
