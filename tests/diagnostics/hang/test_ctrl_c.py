"""Ctrl-C in scripts that hang: the first one says why and ends what it can, the second leaves."""

import os
import re
import signal
import subprocess
import sys

import pytest

import jupyter_jaxcb as jaxcb

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a process"),
]

# A thread prints "stuck" when a host function has begun and the process computes nothing any more.
BEGIN = """
import sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import jupyter_jaxcb as jaxcb

entered = threading.Event()
def watch():
    entered.wait()
    still = 0
    while still < 5:
        before = time.process_time()
        time.sleep(0.1)
        still = still + 1 if time.process_time() - before < 0.01 else 0
    print("stuck", flush=True)
threading.Thread(target=watch, daemon=True).start()

norm = jax.jit(lambda m: jnp.linalg.norm(m @ m))
lock = threading.Lock()
x = jnp.ones((600, 600), jnp.float32) / 600
scalar = jax.ShapeDtypeStruct((), "float32")
"""
HOST = """
def host(m):
    m = np.asarray(m)
    {body}

@jax.jit
def layer(m):
    return {package}.pure_callback(host, scalar, m @ m)
"""
MANY = """
for i in range(200):
    y = layer(x + i / 200)
print(float(y))
"""
ONE = """
y = layer(x)
with lock: print(float(y))
"""
DEADLOCKS = {
    "asarray": "return np.asarray(norm(m))",
    "operator": "return jnp.linalg.norm(m @ m)",
    "block": "return norm(m).block_until_ready()",
    "item": "return np.float32(norm(m).item())",
}
ENDLESS = {"sleeps": "time.sleep(0.01)", "computes": "m = m + 1"}


@pytest.fixture
def press(tmp_path):
    """``press(script, times)`` presses Ctrl-C in a stuck script; return status and stderr."""
    processes = []

    def in_script(script, times):
        (tmp_path / "script.py").write_text(script)
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_jaxcb", "run", "-o", "run.jaxcb", "script.py"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        processes.append(process)
        assert "stuck\n" in iter(process.stdout.readline, "")
        process.send_signal(signal.SIGINT)
        said = ""
        while times == 2 and "Press Ctrl-C again" not in said:
            said += process.stderr.readline() or pytest.fail(said)
        if times == 2:
            process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=60)[1]
        return process.returncode, said

    yield in_script
    for process in processes:
        process.kill()
        process.communicate()


def script_of(body, calls, package="jaxcb"):
    """Return a script, and the line of it that is `body`."""
    script = BEGIN + HOST.format(body=f"entered.set()\n    {body}", package=package) + calls
    return script, 1 + script.splitlines().index(f"    {body}")


@pytest.mark.parametrize("package", ["jax", "jaxcb"])
@pytest.mark.parametrize("body", DEADLOCKS.values(), ids=DEADLOCKS)
def test_deadlock_is_named_and_left_with_a_recording(press, tmp_path, body, package):
    script, line = script_of(body, MANY, package)
    status, said = press(script, 2)
    head = r"host \((jax )?pure, script.py:\d+\) has not returned for [\d.]+ s: it is inside JAX "
    assert re.search(rf"{head}at script.py:{line}, .*: a deadlock\. Use NumPy", said), said
    assert status in (130, -signal.SIGINT)
    assert jaxcb.load(tmp_path / "run.jaxcb").running


@pytest.mark.parametrize("package", ["jax", "jaxcb"])
@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_first_interrupt_ends_python_code_on_a_thread_of_xla(press, body, package):
    loop = f"print('stuck', flush=True)\n    while True: {body}"
    script = BEGIN + HOST.format(body=loop, package=package) + ONE
    status, said = press(script, 1)
    assert "Press Ctrl-C again" not in said
    assert status in (1, -signal.SIGINT), said
