"""Whatever a queued call raises, the next barrier raises it, and the calls after it are made."""

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue
from jupyter_jaxcb.stack.dispatch import _crossing


def raising(name, kind=RuntimeError, base=Exception):
    """Return a class of exceptions whose attribute `name` raises `kind`."""

    def broken(self, *arguments):
        raise kind(f"no {name}")

    special = ("__str__", "__repr__", "__getattribute__", "__setattr__")
    return type("Odd", (base,), {name: broken if name in special else property(broken)})


class OddName(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


NAMES = (
    "__class__", "__dict__", "__getattribute__", "__setattr__", "__str__", "__repr__",
    "__traceback__", "__cause__", "__context__", "__notes__", "args",
)  # fmt: skip
ODD = {
    **{name: raising(name) for name in NAMES},
    **{f"{name} exits": raising(name, SystemExit) for name in NAMES},
    "__str__ is interrupted": raising("__str__", KeyboardInterrupt),
    "__class__ is interrupted": raising("__class__", KeyboardInterrupt),
    "__class__ of a base exception": raising("__class__", base=BaseException),
    "__class__ of an interrupt": raising("__class__", base=KeyboardInterrupt),
    "name of the class": OddName("Odd", (Exception,), {}),
    "system exit": SystemExit,
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
}


def raised_by_barrier():
    """Return what `jax.effects_barrier` raises, or the exception of the host function behind it."""
    try:
        jax.effects_barrier()
    except jax.errors.JaxRuntimeError as error:
        return jaxcb.host_error(error) or error.__cause__
    except BaseException as error:
        return error
    return None


@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap], ids=["call", "elements"])
@pytest.mark.parametrize("name", ODD)
def test_exception_reaches_the_barrier_and_later_calls_are_made(name, transform):
    made = []

    def log(x):
        made.append(int(x))
        if x == 1:
            raise ODD[name]

    program = jax.jit(transform(jaxcb.debug(log, queued=True)))
    xs = (
        [jnp.arange(3), jnp.arange(5, 7)] if transform is jax.vmap else list(map(jnp.int32, (1, 5)))
    )
    recorded = jaxcb.record()
    block = recorded.__enter__()
    for x in xs:
        program(x)
    raised = raised_by_barrier()
    recorded.__exit__(None, None, None)
    assert type(raised) is ODD[name]
    assert raised_by_barrier() is None
    assert made == ([0, 1, 5, 6] if transform is jax.vmap else [1, 5])
    assert len(block.recording) + sum(use.skipped for use in block.recording.queue) == (
        5 if transform is jax.vmap else 2
    )


def test_error_in_the_report_of_an_error_reaches_the_barrier(monkeypatch):
    def report_failure(*arguments, **options):
        raise MemoryError("no report")

    def log(x):
        raise ValueError("the reason")

    program = jax.jit(jaxcb.debug(log, queued=True))
    monkeypatch.setattr(_crossing, "report_failure", report_failure)
    program(1.0)
    error = raised_by_barrier()
    assert type(error) is MemoryError
    assert str(error.__context__) == "the reason"
    monkeypatch.undo()
    program(1.0)
    assert str(raised_by_barrier()) == "the reason"


def test_error_of_the_recorder_reaches_the_barrier(monkeypatch):
    def called(*arguments):
        raise MemoryError("the log is full")

    program = jax.jit(jaxcb.debug(lambda x: None, queued=True))
    with jaxcb.record() as r:
        monkeypatch.setattr(jaxcb.recording.active(), "called", called)
        program(1.0)
        assert type(raised_by_barrier()) is MemoryError
        monkeypatch.undo()
        program(1.0)
    assert len(r.recording) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_barrier_starts_a_thread_for_the_calls_that_a_dead_one_has_left(gate, monkeypatch):
    """Nothing is known to end the thread, so the test does."""
    made = []
    log = jaxcb.debug(lambda x: made.append(int(x)), queued=True)
    gate.close()
    log(1)
    thread = queue._thread

    def rest():
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(queue, "_rest", rest)
    gate.open()
    thread.join(60)
    assert (made, thread.is_alive()) == ([], False)
    jax.effects_barrier()
    assert made == [1]


def test_process_forked_by_a_queued_call_has_a_queue_of_its_own(in_process):
    done = in_process(
        """
        import os, jax, jupyter_jaxcb as jaxcb
        def fork():
            child = os.fork()
            if not child:
                return
            os.waitpid(child, 0)
            print("parent", flush=True)
        jaxcb.debug_callback(fork, queued=True)
        jax.effects_barrier()
        """
    )
    assert done.stdout == "parent\n"
