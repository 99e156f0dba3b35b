"""Barriers and the end of Python wait for queued calls, and report each failure once."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import pytest
from jax._src.dispatch import runtime_tokens

import jupyter_jaxcb as jaxcb
from tests.interface import wait_for_queued_calls


def failing(x):
    raise ValueError(f"no luck with {x}")


def test_barrier_raises_the_error_of_a_failed_call_once():
    f = jax.jit(jaxcb.debug(failing, queued=True))
    assert f(2.0) is None  # the program does not fail
    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck") as caught:
        jax.effects_barrier()
    original = jaxcb.host_error(caught.value)
    assert type(original) is ValueError
    assert caught.value.__cause__ is original
    assert "raised by the debug callback failing, bound at test_barrier.py" in original.__notes__[0]
    jax.effects_barrier()


def test_error_counts_the_failures_after_it_and_later_runs_work():
    calls = []

    def log(x):
        calls.append(float(x))
        if x < 3:
            raise ValueError("too small")

    f = jax.jit(jaxcb.debug(log, queued=True))
    for number in range(6):
        f(float(number))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.effects_barrier()
    assert calls == [0, 1, 2, 3, 4, 5]
    assert "queued calls that failed after it: 2" in jaxcb.host_error(caught.value).__notes__
    f(7.0)
    jax.effects_barrier()
    assert calls[-1] == 7


def test_error_of_a_thousand_failures_ago_is_still_found():
    log = jaxcb.debug(failing, queued=True)
    f = jax.jit(lambda: jax.lax.fori_loop(0, 1000, lambda i, y: (log(i), y)[1], 0))
    f()
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.effects_barrier()
    assert str(jaxcb.host_error(caught.value)) == "no luck with 0"


def test_failed_ordered_call_does_not_fail_later_ordered_programs():
    f = jax.jit(jaxcb.io(failing, result=None, queued=True, ordered=True))
    f(1.0)
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.effects_barrier()
    assert jax.jit(lambda x: jaxcb.io_callback(lambda x: x + 1, x, x, ordered=True))(1.0) == 2


def test_failing_element_of_a_batch_ends_its_crossing_only():
    calls = []

    def log(x):
        calls.append(int(x))
        if x == 1:
            raise ValueError("one")

    f = jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))
    f(jnp.arange(3))
    f(jnp.arange(5, 7))
    with pytest.raises(jax.errors.JaxRuntimeError, match="in batch element 1"):
        jax.effects_barrier()
    assert calls == [0, 1, 5, 6]


class Failed:
    """The token of a program that failed."""

    def block_until_ready(self):
        raise jax.errors.JaxRuntimeError("a program failed")


def test_barrier_that_raises_the_error_of_a_program_has_waited_for_queued_calls(monkeypatch):
    seen = []

    def log(x):
        time.sleep(0.05)
        seen.append(float(x))

    jaxcb.debug_callback(log, 1.0, queued=True)
    monkeypatch.setitem(runtime_tokens.output_runtime_tokens, "failed", Failed())
    with pytest.raises(jax.errors.JaxRuntimeError, match="a program failed"):
        jax.effects_barrier()
    assert seen == [1.0]


def test_barrier_in_a_queued_call_does_not_raise_the_error_of_an_earlier_one():
    made = []

    def later(x):
        jax.effects_barrier()
        made.append(x)

    jaxcb.debug_callback(failing, 1.0, queued=True)
    jaxcb.debug_callback(later, 2.0, queued=True)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck"):
        jax.effects_barrier()
    assert len(made) == 1


def test_exception_that_is_raised_again_has_one_count_of_failures():
    error = ValueError("the same")

    def log(x):
        raise error

    f = jax.jit(jaxcb.debug(log, queued=True))
    for count in (3, 2):
        for _ in range(count):
            f(1.0)
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.effects_barrier()
    counts = [note for note in error.__notes__ if "after it" in note]
    assert counts == ["queued calls that failed after it: 1"]


def test_system_exit_of_a_queued_call_is_raised_by_the_barrier():
    jaxcb.debug_callback(sys.exit, 3, queued=True)
    with pytest.raises(SystemExit, match="3"):
        jax.effects_barrier()


def test_waiting_for_a_result_does_not_wait_for_queued_calls(gate):
    gate.close()
    seen = []
    f = jax.jit(lambda x: (jaxcb.debug_callback(seen.append, x, queued=True), x + 1)[1])
    assert f(1.0).block_until_ready() == 2
    assert seen == []
    gate.open()
    jax.effects_barrier()
    assert len(seen) == 1


def test_ctrl_c_ends_a_barrier_and_the_calls_are_still_made(gate):
    seen = []
    gate.close()
    jaxcb.debug_callback(seen.append, 1.0, queued=True)
    jaxcb.debug_callback(lambda: None, queued=True)

    def press():
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        wait_for_queued_calls(press)
    assert seen == []
    gate.open()
    jax.effects_barrier()
    assert len(seen) == 1


def test_drop_queued_drops_what_waits_and_ends_the_call_that_runs():
    running, made, ended = [], [], []

    def stuck():
        running.append(1)
        try:
            while True:
                pass
        finally:
            ended.append(1)

    jaxcb.debug_callback(stuck, queued=True)
    while not running:
        pass
    for number in range(4):
        jaxcb.debug_callback(made.append, number, queued=True)
    jax.vmap(jaxcb.debug(made.append, queued=True))(jnp.arange(3))
    assert jaxcb.drop_queued() == 7
    jax.effects_barrier()  # does not report the call that was ended
    assert (made, ended) == ([], [1])
    assert jaxcb.drop_queued() == 0


def script(text):
    return textwrap.dedent(
        """
        import os, sys, time, jax, numpy as np, jupyter_jaxcb as jaxcb
        """
    ) + textwrap.dedent(text)


def test_script_makes_its_queued_calls_before_it_ends(in_process):
    done = in_process(
        script(
            """
            def log(i):
                time.sleep(0.001)
                print(int(i), end=" ")
            log = jaxcb.debug(log, queued=True)
            jax.jit(lambda: jax.lax.fori_loop(0, 200, lambda i, y: (log(i), y)[1], 0))()
            """
        )
    )
    assert done.stdout.split() == [str(number) for number in range(200)]


@pytest.mark.long
def test_eager_calls_of_a_script_without_programs_are_made_too(in_process):
    done = in_process(
        script("jaxcb.debug_callback(lambda x: print('got', x), np.float32(2), queued=True)")
    )
    assert done.stdout == "got 2.0\n"


@pytest.mark.long
def test_error_that_no_barrier_raised_is_shown_once_when_the_script_ends(in_process):
    done = in_process(
        script(
            """
            def log(x):
                raise ValueError(f"no luck with {x}")
            log = jax.jit(jaxcb.debug(log, queued=True))
            for number in range(3):
                log(float(number))
            """
        )
    )
    assert done.stderr.count("no luck with 0.0") == 1
    assert "no jax.effects_barrier() has raised its error" in done.stderr
    assert "queued calls that failed after it: 2" in done.stderr


@pytest.mark.long
def test_ctrl_c_at_the_end_drops_the_rest_and_says_how_many(tmp_path):
    program = script(
        """
        def log(i):
            print(int(i), flush=True)
            time.sleep(0.5 if i == 0 else 4)
        log = jaxcb.debug(log, queued=True)
        jax.jit(lambda: jax.lax.fori_loop(0, 20, lambda i, y: (log(i), y)[1], 0))()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert [process.stdout.readline() for _ in range(2)] == ["0\n", "1\n"]
    lines = iter(process.stderr.readline, "")
    assert next(line for line in lines if "making" in line) == (
        "making 18 queued calls (log 18); Ctrl-C drops them\n"
    )
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert "dropped 18 queued calls (log 18)" in errors
    assert out == ""


@pytest.mark.long
@pytest.mark.parametrize("waits", [False, True])
def test_ctrl_c_ends_the_program_and_the_queue_of_a_script(waits):
    """The program runs on two devices, so the script goes on, to its end or to a wait."""
    program = script(
        f"""
        def log(i):
            time.sleep(0.02)
        def slow(i):
            time.sleep(0.02)
            if i == 20:
                os.write(1, b"twenty\\n")  # one write: both devices call
        def body(i, x):
            jaxcb.debug_callback(log, i, queued=True)
            jaxcb.debug_callback(slow, i)
            return x
        mesh = jax.make_mesh((2,), ("d",))
        spec = jax.sharding.PartitionSpec("d")
        loop = lambda x: jax.lax.fori_loop(0, 100_000, body, x)
        f = jax.jit(jax.shard_map(loop, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
        y = f(jax.device_put(jax.numpy.zeros(2), jax.sharding.NamedSharding(mesh, spec)))
        if {waits}:
            time.sleep(1000)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAX_NUM_CPU_DEVICES": "2"},
    )  # fmt: skip
    assert process.stdout.readline() == "twenty\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert "Exception ignored" not in errors, errors
    assert ("dropped" in errors) is not waits  # at its end, Ctrl-C drops what is queued


@pytest.mark.long
def test_forked_process_has_an_empty_queue_of_its_own(in_process):
    done = in_process(
        script(
            """
            import threading
            opened = threading.Event()
            jaxcb.debug_callback(opened.wait, queued=True)
            jaxcb.debug_callback(lambda: print("parent", flush=True), queued=True)
            child = os.fork()
            if not child:
                jaxcb.debug_callback(lambda: print("child", flush=True), queued=True)
                jax.effects_barrier()
                os._exit(0)
            os.waitpid(child, 0)
            opened.set()
            """
        )
    )
    assert done.stdout == "child\nparent\n"


@pytest.mark.long
def test_without_the_hook_into_jax_the_end_of_python_still_waits(in_process):
    done = in_process(
        script(
            """
            from tests.interface import leave_barriers_to_jax
            leave_barriers_to_jax()
            def log(x):
                time.sleep(0.2)
                print("got", x)
            jaxcb.debug_callback(log, np.float32(2), queued=True)
            jax.effects_barrier()
            print("the barrier did not wait")
            """
        )
    )
    assert done.stdout == "the barrier did not wait\ngot 2.0\n"
