"""Ctrl-C raises KeyboardInterrupt in the caller and cancels the remaining host calls."""

import signal
import sys
import textwrap
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.slow

STRUCT = jax.ShapeDtypeStruct((), np.float32)
CALLBACKS = {
    "pure": lambda f, x: jaxcb.pure_callback(f, STRUCT, x, vmap_method="sequential"),
    "io": lambda f, x: jaxcb.io_callback(f, STRUCT, x),
    "io ordered": lambda f, x: jaxcb.io_callback(f, STRUCT, x, ordered=True),
    "debug": lambda f, x: (jaxcb.debug_callback(f, x), x)[1],
    "buffer": lambda f, x: jaxcb.buffer_callback(
        lambda ctx, out, x: write_result(f, out, x), STRUCT
    )(x),
}
RUNS = {
    "eager": lambda f: f(1.0),
    "first call": lambda f: jax.jit(f)(1.0),
    "in a scan": lambda f: jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, y: f(y), x))(1.0),
    "ahead of time": lambda f: jax.jit(f).lower(1.0).compile()(1.0),
}


def write_result(f, out, x):
    out[...] = f(np.asarray(x))


class Pressed:
    """A host function that presses Ctrl-C in one of its calls."""

    def __init__(self, at):
        self.at, self.calls, self.threads = at, 0, set()

    def __call__(self, x):
        self.calls += 1
        self.threads.add(threading.current_thread() is threading.main_thread())
        if self.calls == self.at:
            signal.raise_signal(signal.SIGINT)
        return np.float32(x)


def callbacks_work_again():
    """Return whether ordered and unordered calls of new programs work."""
    calls = []
    host = lambda x: calls.append(1) or np.float32(x + 1)  # noqa: E731
    for callback in ("pure", "io", "io ordered"):
        assert jax.jit(lambda x, name=callback: CALLBACKS[name](host, x))(1.0) == 2
    return len(calls) == 3


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("callback", CALLBACKS.values(), ids=CALLBACKS)
def test_interrupt_on_the_callers_thread_is_a_keyboard_interrupt(callback, run):
    host = Pressed(at=1)
    with pytest.raises(KeyboardInterrupt):
        jax.block_until_ready(run(lambda x: callback(host, x)))
    assert host.calls == 1
    assert callbacks_work_again()


def test_interrupt_on_the_fast_path_is_a_keyboard_interrupt():
    """From its second call on, a pure program does not go through Python."""
    host = Pressed(at=4)
    f = jax.jit(lambda x: CALLBACKS["pure"](host, x))
    assert [float(f(1.0)) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    assert f(2.0) == 2


@pytest.mark.parametrize("before", [0, 3], ids=["first call", "fast path"])
def test_interrupt_is_not_swallowed_by_except_exception(before):
    host = Pressed(at=before + 1)
    f = jax.jit(lambda x: CALLBACKS["pure"](host, x))
    for _ in range(before):
        f(1.0)
    swallowed = []
    with pytest.raises(KeyboardInterrupt):
        try:
            f(1.0)
        except Exception as error:
            swallowed.append(error)
    assert not swallowed


def test_interrupt_leaves_no_exception_for_later_code():
    """It also leaves no trace function behind."""
    host = Pressed(at=1)
    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: CALLBACKS["pure"](host, x))(1.0)
    assert sum(range(100_000)) == 4_999_950_000  # a pending exception would be raised in any loop
    assert sys.gettrace() is None


def test_interrupt_under_a_debugger_leaves_it_in_place():
    """The debugger keeps tracing; the exception is raised a moment later."""
    host, seen = Pressed(at=1), []

    def debugger(frame, event, argument):
        seen.append(event)

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        with pytest.raises(KeyboardInterrupt):
            jax.jit(lambda x: CALLBACKS["io"](host, x))(1.0)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert seen


SCRIPT = """
    import os, signal, sys, threading
    if {one_core}:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    import jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb
    S = jax.ShapeDtypeStruct((), np.float32)
    big = jnp.ones((1200, 1200))
    slowly = jax.jit(lambda x: (x @ big @ big @ big @ big @ big @ big)[0, 0] * 0)
    slowly(big).block_until_ready()
    calls = 0
    def host(x):
        global calls
        calls += 1
        if calls == 5:
            os.kill(os.getpid(), signal.SIGINT)
            waited.wait(60)
        return np.float32(x)
    waited = threading.Event()
    f = jax.jit(lambda x: jax.lax.fori_loop(
        0, 1_000_000, lambda i, y: jaxcb.io_callback(host, S, y, ordered=True), x))
    f = f.lower(S).compile()
    import atexit
    atexit.register(lambda: os.write(1, f"{{calls}} calls\\n".encode()))
    atexit.register(waited.set)
"""
ENDS = {
    "uncaught": "f(slowly(big)).block_until_ready()",
    "in record()": """
    try:
        with jaxcb.record():
            f(slowly(big)).block_until_ready()
    except KeyboardInterrupt:
        waited.set()
        assert jax.jit(lambda x: jaxcb.io_callback(
            lambda x: x, S, x, ordered=True))(np.float32(3)) == 3
        print("caught", flush=True)
    """,
}


def test_no_thread_waits_for_a_token_in_cpp_at_the_end_of_a_script(in_process):
    done = in_process("""
        import atexit, os, time
        at_end = []
        atexit.register(lambda: os.write(1, " ".join(at_end).encode()))  # called last
        import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
        from jax._src.dispatch import runtime_tokens
        class Token:  # of a program that goes on for a while; coming back later aborts the process
            def block_until_ready(self):
                time.sleep(0.5)
                at_end.append("came back")
        jax.jit(lambda x: jaxcb.io_callback(lambda x: x, x, x))(1.0)
        jax.effects_barrier()
        runtime_tokens.output_runtime_tokens["a device"] = Token()
        try:
            with jaxcb.record():
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
    """)  # fmt: skip
    assert done.stdout == "came back"


@pytest.mark.long
@pytest.mark.parametrize("one_core", [False, True], ids=["all cores", "one core"])
@pytest.mark.parametrize("end", ENDS)
def test_interrupted_script_makes_no_more_calls(in_process, end, one_core):
    program = textwrap.dedent(SCRIPT.format(one_core=one_core)) + textwrap.dedent(ENDS[end])
    done = in_process(program, status=None)
    assert done.stdout.splitlines()[-1] == "5 calls", done.stderr
    if end == "uncaught":
        assert done.stderr.rstrip().splitlines()[-1].startswith("KeyboardInterrupt")
    else:
        assert done.stdout.splitlines()[0] == "caught", done.stderr
