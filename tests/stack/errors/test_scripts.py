"""An uncaught error in a script shows the user's own traceback, once."""

import textwrap

import pytest

HEAD = textwrap.dedent("""
    import sys, threading
    import jax, jax.numpy as jnp, numpy as np
    import jupyter_jaxcb as jaxcb

    calls = []

    def boom(x):
        calls.append(x)
        if len(calls) >= FAILS:
            raise KeyError("no luck")
        return x

    def f(x):
        return jaxcb.pure_callback(boom, x, x)
""")


@pytest.fixture
def script(in_process):
    def run(body, fails=1):
        lines = HEAD.replace("FAILS", str(fails)) + textwrap.dedent(body)
        done = in_process(lines, status=None)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    ("body", "fails"),
    [
        ("f(np.float32(1))", 1),
        ("jax.jit(f)(1.0)", 1),
        ("g = jax.jit(f)\nfor _ in range(3): g(1.0)", 3),  # the C++ fast path raises ValueError
        ("jax.jit(lambda x: jaxcb.io_callback(boom, x, x, ordered=True))(1.0)", 1),
        ("jax.block_until_ready(jax.jit(lambda x: (jaxcb.debug_callback(boom, x), x)[1])(1.0))", 1),
        ("jaxcb.debug_callback(boom, 1.0)", 1),
    ],
)
def test_uncaught_error_is_the_users_traceback_and_nothing_else(script, body, fails):
    code, _, err = script(body, fails)
    assert code == 1
    assert err.count("Traceback") == err.count("KeyError: 'no luck'") == 1
    assert "in <module>" in err and "in boom" in err
    assert "site-packages" not in err and "jupyter_jaxcb" not in err
    assert err.splitlines()[-1].startswith("raised by the ")


@pytest.mark.long
def test_exception_raised_from_a_host_error_shows_both(script):
    body = """
        try:
            jax.jit(f)(1.0)
        except jax.errors.JaxRuntimeError as error:
            raise OSError("mine") from error
    """
    _, _, err = script(body)
    assert err.index("KeyError: 'no luck'") < err.index("OSError: mine")


@pytest.mark.long
def test_excepthook_of_the_user_is_called(script):
    body = """
        sys.excepthook = lambda kind, error, tb: print("mine:", repr(error.__cause__))
        jax.jit(f)(1.0)
    """
    assert script(body)[1] == "mine: KeyError('no luck')\n"


def test_uncaught_error_of_a_thread_is_the_users_traceback(script):
    body = """
        thread = threading.Thread(target=lambda: jax.jit(f)(1.0), name="worker")
        thread.start()
        thread.join()
    """
    code, _, err = script(body)
    assert code == 0
    assert err.startswith("Exception in thread worker:\nTraceback")
    assert err.count("KeyError: 'no luck'") == 1 and "jupyter_jaxcb" not in err


# The operand is still being computed, so XLA calls on one of its own threads.
ASYNC = """
    x = jnp.ones((1000, 1000))
    slow = jax.jit(lambda x: x @ x @ x @ x)
    g = jax.jit(lambda x: jaxcb.{callback}(boom, *{result}, x[0, 0]{more})).lower(x).compile()
    jax.block_until_ready(slow(x))
    g(slow(x))
"""
EFFECTS = [
    {"callback": "io_callback", "result": "(None,)", "more": ""},
    {"callback": "io_callback", "result": "(None,)", "more": ", ordered=True"},
    {"callback": "debug_callback", "result": "()", "more": ""},
    {"callback": "debug_callback", "result": "()", "more": ", ordered=True"},
]


@pytest.mark.long
@pytest.mark.parametrize("effect", EFFECTS)
def test_error_of_a_program_that_nothing_waits_for_is_reported_once_at_exit(script, effect):
    code, _, err = script(ASYNC.format(**effect))
    assert code == 0
    heading = "A host function failed in a program whose result was never waited for:"
    assert err.startswith(f"{heading}\nTraceback")
    assert err.count("KeyError: 'no luck'") == 1
    assert "jupyter_jaxcb" not in err and "atexit" not in err


@pytest.mark.long
def test_errors_that_were_caught_are_not_reported_at_exit(script):
    """One error of each kind in the same script."""
    caught = "except jax.errors.JaxRuntimeError as error: print(repr(error.__cause__))\n"
    body = "".join(
        f"try:\n{ASYNC.format(**effect)}    jax.effects_barrier()\n{caught}" for effect in EFFECTS
    )
    assert script(body) == (0, len(EFFECTS) * "KeyError('no luck')\n", "")


@pytest.mark.long
@pytest.mark.parametrize("exception", ["SystemExit(3)", "KeyboardInterrupt"])
def test_exit_and_interrupt_end_the_script_as_they_do_without_jax(script, in_process, exception):
    body = f"""
        def stop(x):
            raise {exception}
        jax.jit(lambda x: jaxcb.pure_callback(stop, x, x))(1.0)
    """
    without = in_process(f"raise {exception}", status=None).returncode
    assert script(body)[0] == without != 0
