"""The stop button: the cell ends with KeyboardInterrupt, and the next one works."""

import os
import re

import pytest

from ._in_flight import SETUP, Cell

HOSTS = """
calls = 0
def host(x):
    global calls
    calls += 1
    if calls == 3:
        print("inside", flush=True)
    if calls >= 3:
        time.sleep(0.001)
    return np.float32(x)
many = compiled(lambda x: jax.lax.fori_loop(
    0, 1_000_000, lambda i, y: jaxcb.io_callback(host, S, y, ordered=True), x))
elements = compiled(lambda x: jax.vmap(lambda x: jaxcb.pure_callback(
    host, S, x, vmap_method="sequential"))(x + jnp.arange(300_000.0)))
"""
NEXT = """
before = calls
after = jax.jit(lambda x: jaxcb.io_callback(lambda x: x + 1, S, x, ordered=True))(4.0)
[float(after), calls - before, calls < 200_000]"""
RUNS = {
    "eager": "while True:\n    jaxcb.pure_callback(host, S, 1.0)",
    "a loop, on the main thread": "many(1.0)",
    "a loop, on a thread of XLA's": "many(slowly(big)).block_until_ready()",
    "batch elements, on the main thread": "elements(1.0)",
    "batch elements, on a thread of XLA's": "elements(slowly(big)).block_until_ready()",
    "many calls of one program": (
        "g = jax.jit(lambda x: jaxcb.pure_callback(host, S, x))\nwhile True:\n    g(1.0)"
    ),
    "a loop that catches errors": (
        "g = jax.jit(lambda x: jaxcb.pure_callback(host, S, x))\n"
        "while True:\n    try:\n        g(1.0)\n    except Exception:\n        pass"
    ),
}


@pytest.fixture
def prepared(kernel):
    assert kernel.run(SETUP + HOSTS).error is None
    return kernel


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_stop_button_raises_keyboard_interrupt_and_the_next_cell_works(prepared, run):
    prepared.run("calls = 0")
    cell = Cell(prepared, run, prepared.manager.interrupt_kernel)
    assert cell.reply["ename"] == "KeyboardInterrupt"
    assert cell.error["ename"] == "KeyboardInterrupt"
    traceback = "\n".join(cell.error["traceback"])
    assert "JaxRuntimeError" not in traceback and "_stop_button.py" not in traceback
    assert prepared.run(NEXT).value == "[5.0, 0, True]"


def test_cell_that_catches_the_interrupt_continues_immediately(prepared):
    prepared.run("calls = 0")
    code = (
        "try:\n    many(slowly(big)).block_until_ready()\n"
        "except KeyboardInterrupt:\n    print('caught')\n" + NEXT
    )
    cell = Cell(prepared, code, prepared.manager.interrupt_kernel)
    assert cell.error is None and "caught" in cell.text
    assert cell.shown[0]["text/plain"] == "[5.0, 0, True]"


@pytest.mark.long
def test_interrupt_ends_python_code_of_a_host_function_too(prepared):
    prepared.run(
        "ended = []\n"
        "def loops(x):\n    print('inside', flush=True)\n    try:\n"
        "        for n in range(10**12): pass\n"
        "    except KeyboardInterrupt:\n        ended.append(1)\n        raise\n"
        "    return x\n"
        "f = compiled(lambda x: jaxcb.pure_callback(loops, S, x))"
    )
    cell = Cell(
        prepared, "y = f(slowly(big))\ny.block_until_ready()", prepared.manager.interrupt_kernel
    )
    assert cell.error["ename"] == "KeyboardInterrupt"
    assert "still finishing" not in cell.text
    assert prepared.run("after = float(slowly(big)); [after, ended]").value == "[0.0, [1]]"
    assert prepared.run("%jax_callbacks --stacks").text == "no host call is running\n"


@pytest.mark.long
def test_call_that_cannot_be_interrupted_is_named(prepared, tmp_path):
    """It waits in C, as a long SciPy call does: here for the other end of a named pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    prepared.run(
        f"def holds(x):\n    print('inside', flush=True)\n    os.open({str(pipe)!r}, os.O_RDONLY)\n"
        "    return x\n"
        "f = compiled(lambda x: jaxcb.pure_callback(holds, S, x))"
    )
    cell = Cell(
        prepared, "y = f(slowly(big))\ny.block_until_ready()", prepared.manager.interrupt_kernel
    )
    assert cell.error["ename"] == "KeyboardInterrupt"
    words = r"interrupted; still finishing: holds \(pure, \[\d+\] line 5\), call 1, for "
    assert re.search(words, cell.text)
    stacks = prepared.run("%jax_callbacks --stacks").text
    assert re.match(r"holds \(pure, \[\d+\] line 5\), call 1, for ", stacks)
    assert "line 3, in holds: os.open(" in stacks
    assert "threading.py" not in stacks and "jupyter_jaxcb" not in stacks
    os.close(os.open(pipe, os.O_WRONLY))
    assert prepared.run("float(jax.jit(lambda x: x + slowly(big))(6.0))").value == "6.0"
    assert prepared.run("%jax_callbacks --stacks").text == "no host call is running\n"


def test_signal_handler_is_restored_on_unload(kernel):
    kernel.run("import signal")
    ours = kernel.run("signal.getsignal(signal.SIGINT).__qualname__").value
    assert "Stop" in ours
    kernel.run("%unload_ext jupyter_jaxcb")
    plain = kernel.run("signal.getsignal(signal.SIGINT) is signal.default_int_handler").value
    assert plain == "True"
    kernel.run("%load_ext jupyter_jaxcb")
    kernel.run("%unload_ext jupyter_jaxcb")
    assert kernel.run("signal.getsignal(signal.SIGINT) is signal.default_int_handler").value == (
        "True"
    )


@pytest.mark.long
def test_signal_handler_set_by_the_cell_is_called_instead(prepared):
    ran = prepared.run(
        "flag, calls = [], 0\n"
        "def host(x):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls == 2:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0.1)\n"
        "    return x\n"
        "before = signal.signal(signal.SIGINT, lambda *a: flag.append(1))\n"
        "try:\n"
        "    f = compiled(lambda x: jax.lax.fori_loop(\n"
        "        0, 20, lambda i, y: jaxcb.io_callback(host, S, y, ordered=True), x))\n"
        "    f(slowly(big)).block_until_ready()\n"
        "finally:\n"
        "    _ = signal.signal(signal.SIGINT, before)\n"
        "[flag, calls]"
    )
    assert (ran.error, ran.value) == (None, "[[1], 20]")
