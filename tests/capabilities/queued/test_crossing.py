"""Queued calls get the same values as other calls, in the order of the crossings."""

import functools
import signal
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads

X = np.arange(4, dtype=np.float32)
PROGRAMS = {
    "eager": lambda log: [log(X, 2 * X), log(X[0], 1)],
    "jit": lambda log: jax.jit(lambda x: (log(x, 2 * x, None), x + 1)[1])(X),
    "loop": lambda log: jax.lax.fori_loop(0, 5, lambda i, y: (log(i, y), y * 2)[1], X),
    "vmap": lambda log: jax.jit(jax.vmap(log, (None, 0)))(7, X),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("flavor", [jaxcb.debug, functools.partial(jaxcb.io, result=None)])
def test_queued_calls_get_what_other_calls_get(flavor, program):
    def arguments(**options):
        seen = []
        log = flavor(lambda *x: seen.append(jax.tree.map(np.copy, x)), **options)
        PROGRAMS[program](log)
        jax.effects_barrier()
        return seen

    queued, plain = arguments(queued=True), arguments()
    assert len(queued) == len(plain) > 0
    jax.tree.map(np.testing.assert_array_equal, queued, plain)


def test_memory_that_the_program_or_the_user_writes_again_does_not_change_queued_values(gate):
    seen = []
    log = jaxcb.debug(lambda x: seen.append((x.copy(), x.flags.writeable)), queued=True)
    gate.close()
    jax.lax.fori_loop(0, 50, lambda i, x: (log(x), x + 1)[1], jnp.zeros(1000))
    ours = np.zeros(1000, np.float32)
    log(ours)
    ours += 1
    donated = jnp.zeros(1000)
    log(donated)
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    gate.open()
    jax.effects_barrier()
    values, writeable = zip(*seen, strict=True)
    np.testing.assert_array_equal(values, np.repeat([[*range(50), 0, 0]], 1000, 0).T)
    assert not any(writeable)


def test_program_goes_on_while_its_calls_wait(gate):
    gate.close()
    seen = []
    log = jaxcb.debug(lambda i: seen.append(int(i)), queued=True)
    total = jax.jit(lambda: jax.lax.fori_loop(0, 100, lambda i, y: (log(i), y + i)[1], 0))()
    assert (int(total), seen) == (4950, [])
    gate.open()
    jax.effects_barrier()
    assert seen == list(range(100))


def test_calls_of_all_callbacks_and_programs_keep_the_order_of_the_crossings():
    seen = []
    one = jaxcb.debug(lambda i: seen.append(("one", int(i))), queued=True)
    two = jaxcb.io(lambda i: seen.append(("two", int(i))), result=None, queued=True, ordered=True)
    first, second = jax.jit(one), jax.jit(two)
    for i in range(20):
        first(i)
        second(i)
    jax.effects_barrier()
    assert seen == [(name, i) for i in range(20) for name in ("one", "two")]


def test_one_thread_makes_the_calls_of_many_in_the_order_of_each():
    seen, makers = [], set()

    def note(thread, i):
        seen.append((int(thread), int(i)))
        makers.add(threading.get_ident())

    log = jaxcb.debug(note, queued=True)
    run = jax.jit(lambda t: jax.lax.fori_loop(0, 200, lambda i, t: (log(t, i), t)[1], t))
    in_threads(lambda t: [run(t).block_until_ready(), jax.effects_barrier()], range(3))
    assert len(makers) == 1 and len(seen) == 600
    for thread in range(3):
        assert [i for t, i in seen if t == thread] == list(range(200))


def test_queued_function_may_queue_calls_and_wait_for_programs(limit):
    """It waits neither for itself in a barrier, nor for room."""
    limit(0)
    seen = []
    inner = jax.jit(jaxcb.debug(lambda x: seen.append(("inner", float(x))), queued=True))

    def log(x):
        inner(x + 1)
        inner(x + 2)
        jax.effects_barrier()
        seen.append(("outer", float(x)))

    jax.jit(jaxcb.debug(log, queued=True))(1.0)
    jax.effects_barrier()
    jax.effects_barrier()
    assert seen == [("outer", 1.0), ("inner", 2.0), ("inner", 3.0)]


def test_workers_make_the_calls_of_a_crossing_side_by_side_and_crossings_one_after_the_other():
    together, seen = threading.Barrier(2), []

    def upload(step, x):
        together.wait(60)
        seen.append((int(step), float(x)))

    send = jaxcb.io(upload, result=None, queued=True, executor="threads:2", chunksize=1)
    with jaxcb.record() as r:
        for step in range(5):
            jax.vmap(send, (None, 0))(step, X[:2])
    assert [step for step, _ in seen] == [n for n in range(5) for _ in range(2)]
    assert sorted(seen) == [(n, x) for n in range(5) for x in (0, 1)]
    assert (len(r.recording), r.recording.queue) == (10, ())


@pytest.mark.parametrize("options", [{}, {"executor": "threads:2"}, {"vmap_method": "expand_dims"}])
def test_masked_crossings_call_for_the_needed_elements(options, gate):
    seen = []
    send = jaxcb.io(lambda x: seen.extend(np.ravel(x)), result=None, queued=True, **options)
    program = jax.jit(jax.vmap(lambda x: send.where(x > 1, x)))
    with jaxcb.record() as r:
        program(X)
        program(-X)
    assert sorted(seen) == [2, 3]
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (8, 2)
    gate.close()
    program(X)
    assert jaxcb.drop_queued() == (1 if "vmap_method" in options else 2)


class NoText(Exception):
    def __str__(self):
        raise KeyError

    __class__ = property(__str__)
    __traceback__ = property(__str__)


@pytest.mark.parametrize("odd", [SystemExit, KeyboardInterrupt, GeneratorExit, NoText])
def test_whatever_a_call_raises_reaches_the_barrier_and_later_calls_are_made(odd):
    made = []

    def log(x):
        made.append(int(x))
        if x == 1:
            raise odd

    program = jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))
    program(jnp.arange(3))
    program(jnp.arange(5, 7))
    with pytest.raises(BaseException) as caught:
        jax.effects_barrier()
    assert odd in (type(caught.value), type(caught.value.__cause__))
    jax.effects_barrier()
    assert made == [0, 1, 5, 6]


def test_ctrl_c_ends_the_wait_for_room(gate, limit):
    limit(0)
    main, made = threading.get_ident(), []

    def press():
        while sys._current_frames()[main].f_code.co_filename != threading.__file__:
            pass  # the program does not wait yet
        signal.pthread_kill(main, signal.SIGINT)

    gate.close()
    log = jaxcb.debug(lambda x: made.append(int(x)), queued=True)
    log(1)
    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=press).start()
        log(2)
    gate.open()
    jax.effects_barrier()
    assert made == [1]


def test_process_forked_by_a_queued_call_has_a_queue_of_its_own(in_process):
    done = in_process(
        """
        import os, jax, numpy as np, jupyter_jaxcb as jaxcb
        def fork(x):
            child = os.fork()
            if not child:
                return
            os.waitpid(child, 0)
            print("parent", flush=True)
        jaxcb.debug_callback(fork, np.zeros(1000), queued=True)
        jax.effects_barrier()
        """
    )
    assert done.stdout == "parent\n"
