"""The hook into JAX's error class: absent before a failure, and removable without a trace."""

import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import pxla

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.interface import leave_calls_to_jax, stop_attaching_causes

CLASS = jax.errors.JaxRuntimeError


def boom(x):
    raise KeyError(float(x))


def f(x):
    return jaxcb.io_callback(boom, x, x)


def failing(run):
    with pytest.raises(CLASS) as caught:
        jax.block_until_ready(run())
    return caught.value


@pytest.fixture
def untouched():
    stop_attaching_causes()
    before = vars(CLASS).get("__init__"), sys.excepthook, threading.excepthook
    yield before
    stop_attaching_causes()


def test_all_hooks_are_removed(untouched):
    failing(lambda: jax.jit(f)(1.0))
    assert vars(CLASS).get("__init__") is not untouched[0]
    stop_attaching_causes()
    assert (vars(CLASS).get("__init__"), sys.excepthook, threading.excepthook) == untouched


def test_hooks_are_installed_again_by_the_next_failure(untouched):
    failing(lambda: jax.jit(f)(1.0))
    stop_attaching_causes()
    assert isinstance(failing(lambda: jax.jit(f)(1.0)).__cause__, KeyError)


def test_errors_of_jax_itself_are_unchanged(untouched):
    plain = CLASS("INTERNAL: out of luck")
    failing(lambda: jax.jit(f)(1.0))
    error = CLASS("INTERNAL: out of luck")
    assert (str(error), error.args, error.__cause__) == (str(plain), plain.args, None)
    assert isinstance(error, RuntimeError) and repr(error) == repr(plain)


def test_hook_installed_over_ours_is_left_alone(untouched):
    failing(lambda: jax.jit(f)(1.0))
    ours = CLASS.__init__

    def theirs(self, *args):
        ours(self, *args)

    CLASS.__init__ = theirs
    try:
        stop_attaching_causes()
        assert CLASS.__init__ is theirs
    finally:
        CLASS.__init__ = ours
        if untouched[0] is None:
            del CLASS.__init__
        else:
            CLASS.__init__ = untouched[0]


def test_each_thread_gets_the_exception_of_its_own_call():
    """All of them fail at once, because none returns before all have been called."""
    together = threading.Barrier(4, timeout=20)

    def host(x):
        together.wait()
        raise KeyError(int(x))

    programs = [jax.jit(lambda x: jaxcb.pure_callback(host, x, x)) for _ in range(4)]
    compiled = [program.lower(0.0).compile() for program in programs]
    found = {}

    def work(number):
        error = failing(lambda: compiled[number](float(number)))
        found[number] = (repr(error.__cause__), jaxcb.host_error(error) is error.__cause__)

    in_threads(work, range(4))
    assert found == {number: (f"KeyError({number})", True) for number in range(4)}


@pytest.mark.long
def test_barrier_waits_for_running_programs_after_a_failure():
    """A failure drops only the tokens of failed programs."""
    entered, go, seen = threading.Event(), threading.Event(), []

    def host(x):
        entered.set()
        # Called on the dispatching thread, it must not wait.
        assert threading.current_thread() is threading.main_thread() or go.wait(20)
        seen.append("waited for")

    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, x: x @ x / 1000, x))
    x = jnp.ones((1000, 1000))
    ordered = jax.jit(lambda x: jaxcb.io_callback(host, None, x[0, 0], ordered=True))
    run = ordered.lower(x).compile()
    jax.block_until_ready(slow(x))
    run(slow(x))  # on one of XLA's threads, because its operand is still being computed
    assert entered.wait(20)
    failing(lambda: f(np.float32(1)))
    threading.Timer(0.1, go.set).start()
    jax.effects_barrier()
    assert seen == ["waited for"]


def later(x):
    if x == 0:
        raise KeyError("no luck")
    return x


def third_call():
    g = jax.jit(lambda x: jaxcb.pure_callback(later, x, x))
    for x in (2.0, 1.0, 0.0):
        g(np.float32(x))


def test_errors_are_strict_only_inside_the_block():
    with jaxcb.strict_errors(), pytest.raises(CLASS, match="no luck") as caught:
        third_call()
    assert repr(caught.value.__cause__) == "KeyError('no luck')"
    with pytest.raises(ValueError):
        third_call()


def test_strict_errors_stay_on_until_they_are_turned_off():
    jaxcb.strict_errors()
    try:
        with jaxcb.strict_errors(False), pytest.raises(ValueError):
            third_call()
        with pytest.raises(CLASS):
            third_call()
    finally:
        jaxcb.strict_errors(False)
    with pytest.raises(ValueError):
        third_call()


def test_programs_without_callbacks_stay_on_the_fast_path(monkeypatch):
    seen = []

    def python_calls(function):
        """Count how many of three runs go through Python."""
        seen.clear()
        with monkeypatch.context() as patch:
            original = pxla.ExecuteReplicated.__call__
            patch.setattr(
                pxla.ExecuteReplicated,
                "__call__",
                lambda self, *args: seen.append(self.name) or original(self, *args),
            )
            for _ in range(3):
                function(np.float32(1))
        return len(seen)

    with jaxcb.strict_errors():
        assert python_calls(jax.jit(lambda x: x + 1)) == 1
        assert python_calls(jax.jit(lambda x: jaxcb.pure_callback(later, x, x))) == 3
    assert python_calls(jax.jit(lambda x: jaxcb.pure_callback(later, x, x))) == 1


def test_error_names_an_unsupported_version_of_jax(monkeypatch):
    leave_calls_to_jax(monkeypatch)
    with pytest.raises(RuntimeError, match=f"JAX {jax.__version__} is not supported.*host_error"):
        jaxcb.strict_errors()


def test_host_error_is_found_in_an_exception_group():
    error = failing(lambda: jax.jit(f)(1.0))
    group = ExceptionGroup("One or more previous effectful computations failed.", [error])
    assert jaxcb.host_error(group) is error.__cause__
    assert jaxcb.host_error(ExceptionGroup("", [ValueError()])) is None


def test_pending_error_survives_another_error_that_is_caught():
    reported = []

    def run():
        y = failed(slow(big))
        while not y.is_ready():  # wait until it has failed, without raising its error
            pass
        error = failing(lambda: caught(1.0))
        reported.append(repr(jaxcb.host_error(error)))
        with pytest.raises(CLASS) as raised:
            jax.effects_barrier()
        reported.append(repr(jaxcb.host_error(raised.value)))
        jax.effects_barrier()

    big = jnp.ones((1200, 1200))
    slow = jax.jit(lambda x: (x @ big @ big @ big @ big)[0, 0])
    caught = jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))
    failed = jax.jit(lambda x: (jaxcb.debug_callback(boom, x), x)[1]).lower(1.0).compile()
    number = float(slow(big))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert reported == ["KeyError(1.0)", f"KeyError({number})"]
