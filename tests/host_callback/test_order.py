"""Taps, prints and calls are never elided, and they run in program order."""

import functools
import io
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jupyter_jaxcb import host_callback as hcb
from tests._threads import in_threads


class Log:
    """The host functions of a tap, a print and a call, which append to the same list."""

    def __init__(self):
        self.lines = []

    def tap(self, arg, transforms):
        self.lines.append(f"tap {arg:g}")

    def result(self, arg):
        self.lines.append(f"call {arg:g}")
        return arg

    def write(self, text):
        self.lines.append(f"print {float(text):g}")


@pytest.fixture
def log():
    return Log()


def all_three(log, x):
    hcb.id_tap(log.tap, x)
    hcb.id_print(x, output_stream=log)
    return hcb.call(log.result, x, result_shape=x)


def lines(*numbers):
    return [f"{kind} {n:g}" for n in numbers for kind in ("tap", "print", "call")]


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_taps_prints_and_calls_have_one_order(log, around):
    jax.block_until_ready(around(lambda x: all_three(log, all_three(log, x) + 1))(1.0))
    hcb.barrier_wait()
    assert log.lines == lines(1, 2)


def test_order_holds_across_jits_loops_and_branches(log):
    inner = jax.jit(functools.partial(all_three, log))

    def body(c, i):
        return lax.cond(i % 2 == 0, inner, lambda c: all_three(log, c + 10), c) + 1, None

    def f(x):
        all_three(log, 100.0)
        x, _ = lax.scan(body, x, jnp.arange(3))
        x = lax.fori_loop(0, 2, lambda i, c: inner(c) * 2, x)
        return all_three(log, x)

    jax.block_until_ready(jax.jit(f)(0.0))
    hcb.barrier_wait()
    assert log.lines == lines(100, 0, 11, 12, 13, 26, 52)


@jax.jit
def slow(x):
    return x @ x / 1200


def slow_zero():
    """Return a zero that XLA is still computing."""
    x = jnp.zeros((1200, 1200))
    for _ in range(5):
        x = slow(x)
    return x[0, 0]


def test_eager_call_waits_for_the_taps_before_it(log):
    jitted = jax.jit(lambda x: hcb.id_tap(log.tap, x))
    jax.block_until_ready(jitted(slow_zero()))
    log.lines.clear()
    jitted(slow_zero())
    hcb.call(log.result, 1.0, result_shape=1.0)
    hcb.barrier_wait()
    assert log.lines == ["tap 0", "call 1"]


def test_order_holds_across_separate_computations(log):
    """The first computation still waits for its operand when the next ones are dispatched."""
    jitted = jax.jit(functools.partial(all_three, log))
    jax.block_until_ready(jitted(slow_zero()))  # compile everything before the test
    for eager_first in (True, False):
        log.lines.clear()
        jitted(slow_zero())
        if eager_first:
            all_three(log, 1.0)
            jitted(2.0)
        else:
            jitted(1.0)
            all_three(log, 2.0)
        hcb.barrier_wait()
        assert log.lines == lines(0, 1, 2)


def test_unused_tap_runs(seen):
    f = jax.jit(lambda x: (hcb.id_tap(seen, x), hcb.id_tap(seen, 7), x + 1)[2])
    assert seen.of(f, 1.0) == 2.0
    assert seen.values == [1.0, 7]
    seen.of(f, 2.0)
    assert seen.values == [2.0, 7]  # constants are tapped at run time, every time


def test_unused_call_runs_and_equal_calls_are_two():
    calls = []

    def host(x):
        calls.append(float(x))
        return x

    def f(x):
        hcb.call(host, x, result_shape=x)
        hcb.call(host, x, result_shape=x)
        return x

    jax.block_until_ready(jax.jit(f)(2.0))
    hcb.barrier_wait()
    assert calls == [2.0, 2.0]


def test_tracing_calls_nothing(seen):
    f = lambda x: hcb.id_tap(seen, x) * hcb.call(np.sin, x, result_shape=x)  # noqa: E731
    jax.make_jaxpr(f)(1.0)
    jax.eval_shape(f, 1.0)
    compiled = jax.jit(f).lower(1.0).compile()
    assert seen.calls == []
    seen.of(compiled, 1.0)
    assert seen.values == [1.0]


def test_disable_jit_runs_everything(seen):
    def f(x):
        x = lax.fori_loop(0, 2, lambda i, c: hcb.id_tap(seen, c) + 1, x)
        return lax.cond(x > 0, lambda x: hcb.id_tap(seen, x), lambda x: x, x)

    with jax.disable_jit():
        assert seen.of(jax.jit(f), 1.0) == 3.0
    assert seen.values == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("option", [jax.disable_jit, jax.debug_nans, jax.debug_infs])
def test_keys_are_tapped_under_options_that_rerun_computations(seen, option):
    """Even outside jit, a tap of a key compiles a program, which these options must not rerun."""
    with option(True):
        seen.of(lambda: jax.random.key_data(hcb.id_tap(seen, jax.random.key(3))))
    assert seen.values == [[0, 3]]


def test_named_scope_and_donation(seen):
    @functools.partial(jax.jit, donate_argnums=0)
    def f(x):
        with jax.named_scope("inside"):
            return hcb.id_tap(seen, x) + 1

    x = jnp.arange(3.0)
    assert seen.of(f, x).tolist() == [1, 2, 3]
    assert x.is_deleted()
    assert seen.values == [[0, 1, 2]]


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
def test_tap_function_may_use_jax_and_taps(seen):
    inner = jax.jit(lambda x: hcb.id_tap(seen, x + 1) * 2)
    results = []

    def tap(arg, transforms):
        results.append(float(inner(arg)))

    jax.block_until_ready(jax.jit(lambda x: hcb.id_tap(seen, hcb.id_tap(tap, x)))(1.0))
    hcb.barrier_wait()
    assert results == [4.0]
    assert seen.values == [2.0, 1.0]


def test_each_thread_has_its_own_order(seen):
    """The calls of two threads may interleave, but those of each thread stay in order."""

    def work(first):
        f = jax.jit(lambda x: hcb.id_tap(seen, x))
        for number in range(first, first + 20):
            jax.block_until_ready(f(np.int32(number)))

    in_threads(work, (0, 100))
    hcb.barrier_wait()
    assert [n for n in seen.values if n < 100] == list(range(20))
    assert [n for n in seen.values if n >= 100] == list(range(100, 120))


def test_prints_of_several_threads_do_not_interleave():
    """No other thread writes between the two lines of a print."""
    stream = io.StringIO()
    f = jax.jit(lambda x: hcb.id_print(x, what="x", output_stream=stream))
    threads = [
        threading.Thread(target=lambda: [jax.block_until_ready(f(1.0)) for _ in range(30)])
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stream.getvalue() == "what: x\n1.\n" * 90
