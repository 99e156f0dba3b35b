"""Queued calls get the same values as other calls, in the order of the crossings."""

import threading

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.queued import _crossing
from tests._threads import in_threads


def seen_by(register, program, *args):
    """Return what the calls of `program` get, whose callback `register` registers."""
    seen = []

    def log(*args, **kwargs):
        seen.append((args, kwargs))

    jax.block_until_ready(program(register(log))(*args))
    jax.effects_barrier()
    return seen


QUEUED = {
    "debug": jaxcb.debug(queued=True),
    "debug ordered": jaxcb.debug(queued=True, ordered=True),
    "io": jaxcb.io(queued=True, result=None),
    "io ordered": jaxcb.io(queued=True, result=None, ordered=True),
    "debug_callback": lambda f: lambda *a: jaxcb.debug_callback(f, *a, queued=True),
    "io_callback": lambda f: lambda *a: jaxcb.io_callback(f, None, *a, queued=True),
}
PROGRAMS = {
    "eager": lambda log: lambda x: [log(x, 2 * x), log(x[0], 1)] and x,
    "jit": lambda log: jax.jit(lambda x: (log(x, 2 * x), x + 1)[1]),
    "scan": lambda log: jax.jit(
        lambda x: jax.lax.fori_loop(0, 5, lambda i, y: (log(i, y), y * 2)[1], x)
    ),
    "cond": lambda log: jax.jit(
        lambda x: jax.lax.cond(x[0] > 0, lambda: log(x), lambda: log(x, x)) or x
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("register", QUEUED.values(), ids=QUEUED)
def test_queued_calls_get_what_other_calls_get(register, program):
    x = jnp.arange(3.0)
    queued, plain = seen_by(register, program, x), seen_by(jaxcb.debug, program, x)
    assert len(queued) == len(plain)
    jax.tree.map(np.testing.assert_array_equal, queued, plain)


def test_gradients_are_those_without_the_callback_which_gets_the_primals():
    program = lambda log: jax.jit(jax.grad(lambda x: (log(x), x**3)[1]))  # noqa: E731
    ((args, _),) = seen_by(QUEUED["debug"], program, 2.0)
    assert float(args[0]) == 2.0
    assert program(jaxcb.debug(lambda x: None, queued=True))(2.0) == 12.0


@pytest.mark.parametrize("register", [jaxcb.debug, jaxcb.debug(queued=True)])
def test_arguments_are_read_only_arrays_of_the_traced_dtype(register):
    values = [np.ones((), dtype) for dtype in (bool, np.int8, np.complex64, ml_dtypes.bfloat16)]
    values.append(np.ones((2, 3), np.uint8))
    ((args, _),) = seen_by(register, lambda log: jax.jit(log), *values)
    assert [(type(arg), arg.shape, arg.dtype) for arg in args] == [
        (np.ndarray, value.shape, value.dtype) for value in values
    ]
    assert not any(arg.flags.writeable for arg in args)


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_prng_keys_are_passed_as_without_the_queue(kind):
    key = jax.random.key(3)
    register = lambda **options: jaxcb.debug(arrays=kind, **options)  # noqa: E731
    (((queued,), _),) = seen_by(register(queued=True), jax.jit, key)
    (((plain,), _),) = seen_by(register(), jax.jit, key)
    assert type(queued) is type(plain)
    assert queued.dtype == plain.dtype
    if kind == "jax":
        queued, plain = jax.random.key_data(queued), jax.random.key_data(plain)
    np.testing.assert_array_equal(queued, plain)


def test_arguments_that_are_not_arrays_are_passed_through():
    marker = object()
    program = lambda log: jax.jit(lambda x: log("step", x, by=marker))  # noqa: E731
    ((args, kwargs),) = seen_by(QUEUED["debug"], program, 1.0)
    assert args[0] == "step"
    assert kwargs == {"by": marker}


def test_memory_that_the_program_writes_again_does_not_change_queued_values(gate):
    seen = []
    log = jaxcb.debug(lambda x: seen.append(x.copy()), queued=True)
    gate.close()
    x = jnp.zeros(1000)
    jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, x: (log(x), x + 1)[1], x))(x)
    assert seen == []
    gate.open()
    jax.effects_barrier()
    np.testing.assert_array_equal([row[0] for row in seen], np.arange(50))
    assert all((row == row[0]).all() for row in seen)


def test_eager_calls_keep_the_values_of_arrays_that_are_changed_later(gate):
    seen = []
    log = jaxcb.debug(lambda *xs: seen.append([x.copy() for x in xs]), queued=True)
    gate.close()
    ours, donated = np.zeros(1000, np.float32), jnp.zeros(1000)
    log(ours, donated)
    ours += 1
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        donated = add(donated)
    gate.open()
    jax.effects_barrier()
    np.testing.assert_array_equal(seen, np.zeros((1, 2, 1000)))


@pytest.mark.parametrize("shape", [(), (3,), (1000,)])
def test_xla_copies_the_operands_so_the_crossing_does_not(shape):
    owners = []
    log = jaxcb.debug(lambda x: owners.append(x.base is None), queued=True)
    jax.jit(log)(jnp.ones(shape))
    jax.effects_barrier()
    assert owners == [True]


def test_arrays_that_do_not_own_their_memory_are_copied(gate, monkeypatch):
    """Such as those of a version of XLA that does not copy."""
    crossings, seen, build = [], [], _crossing._adding

    def keep(*args, **options):
        crossings.append(build(*args, **options))
        return crossings[-1]

    monkeypatch.setattr(_crossing, "_adding", keep)
    jax.jit(jaxcb.debug(lambda x: seen.append(x.copy()), queued=True)).lower(jnp.zeros(3))
    memory = np.zeros(6, np.float32)
    gate.close()
    crossings[0](memory[:3])
    memory += 1
    gate.open()
    jax.effects_barrier()
    np.testing.assert_array_equal(seen, np.zeros((1, 3)))


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


def test_all_calls_run_on_one_thread_of_their_own():
    threads = set()
    log = jaxcb.debug(lambda x: threads.add(threading.current_thread().name), queued=True)
    jax.jit(log)(1.0)
    log(2.0)
    jax.effects_barrier()
    assert threads == {"queued calls"}


def test_crossings_of_many_threads_lose_nothing_and_keep_the_order_of_each_thread():
    seen = []
    log = jaxcb.debug(lambda t, i: seen.append((int(t), int(i))), queued=True)

    def body(i, t):
        log(t, i)
        return t

    run = jax.jit(lambda t: jax.lax.fori_loop(0, 200, body, t))
    run(0).block_until_ready()
    in_threads(lambda t: run(t).block_until_ready(), (1, 2, 3))
    jax.effects_barrier()
    assert len(seen) == 800
    for number in range(4):
        assert [i for t, i in seen if t == number] == list(range(200))


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["a", "b", "ordered"]), min_size=1, max_size=8), st.integers(0, 4))
def test_random_programs_make_the_same_calls_as_without_the_queue(names, length):
    def run(**options):
        seen = []

        def log(name):
            return lambda *args: seen.append((name, *map(int, args)))

        calls = {name: jaxcb.debug(log(name), ordered=name == "ordered", **options)
                 for name in ("a", "b", "ordered")}  # fmt: skip

        def body(i, x):
            for place, name in enumerate(names):
                calls[name](i, x + place)
            return x + 1

        jax.jit(lambda x: jax.lax.fori_loop(0, length, body, x))(3).block_until_ready()
        jax.effects_barrier()
        return seen

    queued, plain = run(queued=True), run()
    assert sorted(queued) == sorted(plain)
    ordered = [call for call in queued if call[0] == "ordered"]
    assert ordered == [call for call in plain if call[0] == "ordered"]


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


def test_debug_print_is_queued_with_the_options_of_its_call(capsys):
    f = jax.jit(lambda x: jaxcb.debug_print("x = {x}", x=x, queued=True))
    for number in range(3):
        f(float(number))
    jax.effects_barrier()
    assert capsys.readouterr().out == "x = 0.0\nx = 1.0\nx = 2.0\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jaxcb.debug(len, queued=True, on_full="dorp"), "did you mean 'drop'"),
        (lambda: jaxcb.debug(len, on_full="drop"), "on_full='drop' needs queued=True"),
        (lambda: jaxcb.io(len, result="x", queued=True), "Declare result=None"),
        (
            lambda: jaxcb.io_callback(len, jax.ShapeDtypeStruct((), "f4"), 1.0, queued=True),
            "queued=True cannot be combined with the result of len",
        ),
        (lambda: jaxcb.debug_print("x", queued=True, on_full="no"), "unknown on_full 'no'"),
        (lambda: jaxcb.set_queue_limit(-1), r"Try set_queue_limit\(64 << 20\)"),
    ],
)
def test_options_that_do_not_go_together_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
