"""Errors of taps wait for the next barrier; errors of calls end the computation."""

import logging
import threading

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

MODES = {"eager": lambda f: f, "jit": jax.jit}
eager_and_jit = pytest.mark.parametrize("around", MODES.values(), ids=MODES)


def boom(arg, transforms):
    raise ValueError(f"no luck with {float(arg):g}")


@eager_and_jit
def test_failing_tap_does_not_stop_the_computation(seen, around):
    f = around(lambda x: hcb.id_tap(seen, hcb.id_tap(boom, x) + 1) * 2)
    assert jax.block_until_ready(f(1.0)) == 4.0
    with pytest.raises(hcb.CallbackException):
        hcb.barrier_wait()
    assert seen.values == [2.0]


@eager_and_jit
def test_barrier_raises_the_error_once(around):
    jax.block_until_ready(around(lambda x: hcb.id_tap(boom, x))(1.0))
    with pytest.raises(hcb.CallbackException, match=r"Traceback[\s\S]*in boom[\s\S]*no luck") as e:
        hcb.barrier_wait("with a name")
    assert repr(e.value.__cause__) == "ValueError('no luck with 1')"
    assert jaxcb.host_error(e.value) is e.value.__cause__
    assert hcb.barrier_wait() is None


def test_last_error_is_reported(caplog):
    f = jax.jit(lambda x: hcb.id_tap(boom, hcb.id_tap(boom, x) + 1))
    jax.block_until_ready(f(1.0))
    with pytest.raises(hcb.CallbackException, match="no luck with 2"):
        hcb.barrier_wait()


def test_all_errors_are_logged(caplog):
    f = jax.jit(lambda x: hcb.id_tap(boom, hcb.id_tap(boom, x) + 1))
    with caplog.at_level(logging.ERROR):
        jax.block_until_ready(f(1.0))
        with pytest.raises(hcb.CallbackException):
            hcb.barrier_wait()
    records = [r for r in caplog.records if r.name == "jupyter_jaxcb.host_callback"]
    assert [r.levelname for r in records] == ["ERROR", "ERROR"]
    assert [str(r.exc_info[1]) for r in records] == ["no luck with 1", "no luck with 2"]


def test_remaining_steps_of_a_loop_run(seen):
    def body(c, x):
        hcb.id_tap(boom, x)
        return c + hcb.id_tap(seen, x), None

    assert jax.jit(lambda: lax.scan(body, 0, jnp.arange(4))[0])() == 6
    with pytest.raises(hcb.CallbackException, match="no luck with 3"):
        hcb.barrier_wait()
    assert seen.values == [0, 1, 2, 3]


def test_stop_waits_and_raises_too(seen):
    jax.block_until_ready(jax.jit(lambda x: hcb.id_tap(boom, x))(1.0))
    with pytest.raises(hcb.CallbackException):
        hcb.stop_outfeed_receiver()
    assert hcb.stop_outfeed_receiver() is None
    assert seen.of(jax.jit(lambda x: hcb.id_tap(seen, x) + 1), 1.0) == 2.0
    assert seen.values == [1.0]


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
def test_barrier_in_a_host_function_does_not_wait_for_that_function(seen):
    def tap(arg, transforms):
        hcb.barrier_wait()
        seen(arg, transforms)

    seen.of(jax.jit(lambda x: hcb.id_tap(tap, x)), 1.0)
    assert seen.values == [1.0]


def test_barrier_waits_for_a_host_function_of_another_thread():
    entered, go, left = threading.Event(), threading.Event(), []

    def tap(arg, transforms):
        entered.set()
        assert go.wait(30)
        left.append(float(arg))

    f = jax.jit(lambda x: hcb.id_tap(tap, x))
    thread = threading.Thread(target=lambda: jax.block_until_ready(f(1.0)))
    thread.start()
    assert entered.wait(30)
    waiting = threading.Thread(target=lambda: (hcb.barrier_wait(), left.append("barrier")))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    go.set()
    thread.join()
    waiting.join()
    assert left == [1.0, "barrier"]


def test_barrier_waits_for_computations_of_this_thread():
    """The operand of the tap comes from computations that have just started."""
    done = []
    slow = jax.jit(lambda x: x @ x / 1200)
    f = jax.jit(lambda x: hcb.id_tap(lambda a, t: done.append(a.shape), x[:2]))
    x = jnp.ones((1200, 1200))
    for _ in range(5):
        x = slow(x)
    f(x)
    hcb.barrier_wait()
    assert done == [(2, 1200)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupt_or_exit_is_raised_immediately(error):
    def stop(arg, transforms):
        raise error

    with pytest.raises(error):
        hcb.id_tap(stop, 1.0)
    with pytest.raises(error):
        jax.block_until_ready(jax.jit(lambda x: hcb.id_tap(stop, x))(1.0))
    jax.effects_barrier()
    assert hcb.barrier_wait() is None


@eager_and_jit
def test_failing_call_ends_the_computation(seen, around):
    def fails(x):
        raise KeyError("no luck")

    f = around(lambda x: hcb.id_tap(seen, hcb.call(fails, x, result_shape=x)))
    with pytest.raises(RuntimeError, match=r"KeyError: 'no luck'") as caught:
        jax.block_until_ready(f(1.0))
    assert isinstance(caught.value, jax.errors.JaxRuntimeError)
    assert repr(jaxcb.host_error(caught.value)) == "KeyError('no luck')"
    assert seen.calls == []
    assert seen.of(jax.jit(lambda x: hcb.id_tap(seen, x)), 2.0) == 2.0


def test_barrier_reports_the_error_of_a_call_whose_result_nobody_waits_for(monkeypatch):
    """`jax.effects_barrier` raises it, as it does for a program that runs asynchronously."""

    def fails(x):
        raise KeyError("no luck")

    with pytest.raises(RuntimeError) as caught:
        jax.block_until_ready(jax.jit(lambda x: hcb.call(fails, x, result_shape=x))(1.0))

    def barrier():
        raise caught.value

    with monkeypatch.context() as patch:
        patch.setattr(jax, "effects_barrier", barrier)
        with pytest.raises(hcb.CallbackException, match="no luck"):
            hcb.barrier_wait()
    assert hcb.barrier_wait() is None


def test_barrier_does_not_change_unrelated_errors(monkeypatch):
    def barrier():
        raise OSError("not ours")

    with monkeypatch.context() as patch:
        patch.setattr(jax, "effects_barrier", barrier)
        with pytest.raises(OSError, match="not ours"):
            hcb.barrier_wait()


@pytest.mark.long
def test_error_at_exit_is_logged_and_the_status_is_0(in_process):
    done = in_process("""
        import jax
        from jupyter_jaxcb import host_callback as hcb

        def boom(arg, transforms):
            raise ValueError("no luck")

        jax.jit(lambda x: hcb.id_tap(boom, x))(1.0)
    """)
    assert "ValueError: no luck" in done.stderr
    assert "error of a tap that no barrier_wait has raised" in done.stderr


def test_error_of_a_tap_decorator_is_logged_at_exit_too(in_process):
    """The module host_callback is not imported there."""
    done = in_process("""
        import jax, logging, sys
        import jupyter_jaxcb as jaxcb

        @jaxcb.tap
        def boom(arg):
            raise ValueError("no luck")

        jax.jit(boom)(1.0)
        jax.effects_barrier()
        print(sys.modules.get("jupyter_jaxcb.host_callback"))
        print("ends", file=sys.stderr, flush=True)
    """)
    assert done.stdout == "None\n"
    assert "no luck" in done.stderr.partition("ends\n")[2]


def test_barrier_takes_a_name_for_the_log():
    seen = []
    jax.jit(lambda x: hcb.id_tap(lambda value, _: seen.append(value), x))(1.0)
    hcb.barrier_wait(logging_name="the end")
    assert seen == [1.0]
