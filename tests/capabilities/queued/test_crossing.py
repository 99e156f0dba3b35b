"""Queued calls get the same values as other calls, in the order of the crossings."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.interface import wait_for_queued_calls

X = np.arange(4, dtype=np.float32)
FLAVORS = {
    "debug": jaxcb.debug,
    "debug ordered": lambda f, **options: jaxcb.debug(f, ordered=True, **options),
    "io": lambda f, **options: jaxcb.io(f, result=None, **options),
    "debug_callback": lambda f, **o: lambda *a: jaxcb.debug_callback(f, *a, **o),
    "io_callback": lambda f, **o: lambda *a: jaxcb.io_callback(f, None, *a, **o),
}
PROGRAMS = {
    "eager": lambda log, x: [log(x, 2 * x), log(x[0], 1)],
    "jit": lambda log, x: jax.jit(lambda x: (log(x, 2 * x), x + 1)[1])(x),
    "loop": lambda log, x: jax.lax.fori_loop(0, 5, lambda i, y: (log(i, y), y * 2)[1], x),
    "cond": lambda log, x: jax.jit(lambda x: jax.lax.cond(x[0] > 0, log, lambda y: log(y, y), x))(
        x
    ),
    "vmap": lambda log, x: jax.jit(jax.vmap(log, (None, 0)))(7, x),
    "key": lambda log, x: jax.jit(lambda k: log(jax.random.key_data(k)))(jax.random.key(3)),
    "none": lambda log, x: jax.jit(lambda x: log("step", x, None))(x),
}


def seen_by(register, program, **options):
    """Return what the calls of a program get, and whether that may be written to."""
    seen = []
    log = register(lambda *args: seen.append(jax.tree.map(np.copy, args)), **options)
    PROGRAMS[program](log, X)
    jax.effects_barrier()
    return seen


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_queued_calls_get_what_other_calls_get(flavor, program):
    queued = seen_by(FLAVORS[flavor], program, queued=True)
    plain = seen_by(FLAVORS[flavor], program)
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
    log(jnp.zeros(1000))
    gate.open()
    jax.effects_barrier()
    values, writeable = zip(*seen, strict=True)
    np.testing.assert_array_equal(values, np.repeat([[*range(50), 0, 0]], 1000, 0).T)
    assert not any(writeable)


def test_barrier_waits_for_the_call_that_runs_when_the_others_are_dropped(gate):
    looks = []

    def look():
        looks.append(jaxcb.drop_queued() if not looks else gate.open())

    gate.close()
    jaxcb.debug_callback(print, 1, queued=True)
    wait_for_queued_calls(look)
    assert looks[:2] == [1, None]


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


def test_crossings_of_many_threads_lose_nothing_and_keep_the_order_of_each_thread():
    seen, threads = [], set()

    def note(t, i):
        seen.append((int(t), int(i)))
        threads.add(threading.current_thread().name)

    log = jaxcb.debug(note, queued=True)
    run = jax.jit(lambda t: jax.lax.fori_loop(0, 200, lambda i, t: (log(t, i), t)[1], t))
    run(0).block_until_ready()
    in_threads(lambda t: run(t).block_until_ready(), (1, 2, 3))
    jax.effects_barrier()
    assert threads == {"queued calls"}
    assert len(seen) == 800
    for number in range(4):
        assert [i for t, i in seen if t == number] == list(range(200))


def test_queued_function_may_queue_calls_and_wait_for_programs():
    seen = []
    inner = jax.jit(jaxcb.debug(lambda x: seen.append(("inner", float(x))), queued=True))

    def log(x):
        inner(x + 1)
        jax.effects_barrier()  # would wait for this call itself
        seen.append(("outer", float(x)))

    jax.jit(jaxcb.debug(log, queued=True))(1.0)
    jax.effects_barrier()
    jax.effects_barrier()
    assert seen == [("outer", 1.0), ("inner", 2.0)]


def test_reregistered_function_is_called_for_what_is_queued(notebook, gate):
    source = "calls = []\n@jaxcb.debug(queued=True)\ndef log(x):\n    calls.append({})\n"
    notebook.run(source.format(1), cell="a")
    compiled = jax.jit(notebook.names["log"])
    gate.close()
    compiled(1.0)
    notebook.run(source.format(2), cell="a")
    gate.open()
    jax.effects_barrier()
    assert notebook.names["calls"] == [2]


def test_debug_print_is_queued_with_the_options_of_its_call(capsys):
    f = jax.jit(lambda x: jaxcb.debug_print("x = {x}", x=x, queued=True))
    for number in range(3):
        f(float(number))
    jax.effects_barrier()
    assert capsys.readouterr().out == "x = 0.0\nx = 1.0\nx = 2.0\n"


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
def test_masked_crossings_call_for_the_needed_elements(options):
    seen = []
    send = jaxcb.io(lambda x: seen.extend(np.ravel(x)), result=None, queued=True, **options)
    program = jax.jit(jax.vmap(lambda x: send.where(x > 1, x)))
    with jaxcb.record() as r:
        program(X)
        program(-X)
    assert sorted(seen) == [2, 3]
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (8, 2)


ODD = [
    SystemExit, KeyboardInterrupt, GeneratorExit,
    type("NoText", (Exception,), {"__str__": lambda self: 1 / 0}),
    type("NoClass", (Exception,), {"__class__": property(lambda self: 1 / 0)}),
    type("NoTraceback", (Exception,), {"__traceback__": property(lambda self: 1 / 0)}),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jaxcb.debug(len, queued=True, on_full="dorp"), "did you mean 'drop'"),
        (lambda: jaxcb.debug(len, on_full="drop"), "on_full='drop' needs queued=True"),
        (lambda: jaxcb.io(len, result="x", queued=True), "Declare result=None"),
        (lambda: jaxcb.set_queue_limit(-1), r"Try set_queue_limit\(64 << 20\)"),
    ],
)
def test_options_that_do_not_go_together_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
