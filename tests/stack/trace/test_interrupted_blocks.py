"""KeyboardInterrupt between any two instructions of the entry and exit of a block."""

import linecache
import threading
import traceback

import jax
import pytest
from jax._src import api, callback
from jax._src.interpreters import pxla

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue
from jupyter_jaxcb.diagnostics.observe import _observe
from jupyter_jaxcb.diagnostics.record import _listening, _record
from jupyter_jaxcb.recording import active
from jupyter_jaxcb.stack.elision import _programs
from jupyter_jaxcb.stack.trace import _listener
from jupyter_jaxcb.testing import host_calls
from tests.stack._interrupts import OUR_FILES, Interrupts

pytestmark = pytest.mark.slow

double = jaxcb.pure(lambda x: 2 * x, result="x")
program = jax.jit(lambda x: double(x) + 1)


def changed():
    """Return the parts of JAX that are patched during a recording."""
    return [
        pxla.lower_sharding_computation,
        pxla.ExecuteReplicated.__call__,
        api._post_hook_state.get_global(),
        callback.pure_callback_impl,
    ]


def record_block(interrupts, seen):
    with jaxcb.record() as recorded:
        interrupts.armed = False
        seen.append(recorded)
        program(1.0)
        interrupts.armed = True


def annotated_block(interrupts, seen):
    with jaxcb.record(annotate=True) as recorded:
        interrupts.armed = False
        seen.append(recorded)
        program(1.0)
        interrupts.armed = True


def observed_block(interrupts, seen):
    with jaxcb.observe_jax() as recorded:
        interrupts.armed = False
        seen.append(recorded)
        program(1.0)
        interrupts.armed = True


def profiled_block(interrupts, seen):
    with jaxcb.profile() as profiled:
        interrupts.armed = False
        seen.append(profiled)
        program(1.0)
        interrupts.armed = True


def unrecorded_block(interrupts, seen):
    with _record.Unrecorded():
        interrupts.armed = False
        program(1.0)
        interrupts.armed = True


def decorated(interrupts, seen):
    @jaxcb.record()
    def run():
        interrupts.armed = False
        program(1.0)
        interrupts.armed = True

    run()


def counted_block(interrupts, seen):
    with host_calls():
        interrupts.armed = False
        program(1.0)
        interrupts.armed = True


def explained(interrupts, seen):
    jaxcb.explain(lambda x: double(x))(1.0)


# Each block and the stride between the instructions that are interrupted; explain compiles each
# time. The later blocks contain the first one, so the strides sample different instructions of it.
BLOCKS = {
    record_block: 2,
    annotated_block: 5,
    observed_block: 11,
    profiled_block: 101,
    unrecorded_block: 1,
    decorated: 7,
    counted_block: 1,
    explained: 41,
}


@pytest.fixture(autouse=True)
def _no_memory_of_other_tests(monkeypatch):
    """Forget earlier programs: a block handles every one of them, thousands after a test run."""
    monkeypatch.setattr(_programs, "_memory", type(_programs._memory)())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a destructor
@pytest.mark.parametrize("block", BLOCKS)
def test_block_is_entered_and_exited_cleanly_wherever_an_interrupt_comes(block):
    program(1.0)
    whole, n, interrupted = changed(), 0, 0
    while True:
        n += BLOCKS[block]
        interrupts, seen = Interrupts(n), []
        try:
            with interrupts:
                block(interrupts, seen)
        except KeyboardInterrupt as error:
            # The traceback has every frame the interrupt passed through.
            interrupted += 1
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            own = [f for f in frames if f.f_code.co_filename.startswith(OUR_FILES)]
            place = f"{n}: {own[-1].f_code.co_qualname}:{own[-1].f_lineno}"
            assert active() is None, place
            line = linecache.getline(own[-1].f_code.co_filename, own[-1].f_lineno)
            while queue.lock._is_owned():  # at the end of a `with`, Python handles no signal
                assert line.lstrip().startswith("with "), place
                queue.lock.release()
            assert changed() == whole, place
            assert not _listening._users | _listening._silent | _listening._annotating, place
            assert not _observe._users and not _listener.has_thread_recorder(), place
            assert [len(recorded.recording) for recorded in seen] in ([], [1]), place
            assert all(one.profile for one in seen if block is profiled_block), place
            with jaxcb.record() as after:
                program(1.0), program(2.0)
            assert len(after.recording) == 2, place
            assert not _programs._compilation_listeners, place
            assert not any(
                "Compilations" in listener.__qualname__
                for listener in jax._src.monitoring.get_event_duration_listeners()
            ), place
            assert "jaxcb profile" not in [one.name for one in threading.enumerate()], place
        if interrupts.left > 0:  # there is no n-th instruction
            break
    assert interrupted > 10
    made = threading.Event()
    jaxcb.debug_callback(made.set, queued=True)
    assert made.wait(60)  # nobody waits for it in the queue, whose lock is free
    assert len(recording_of(block) or [0]) == 1


def recording_of(block):
    seen = []
    block(Interrupts(0), seen)
    return seen[0].recording if seen else None
