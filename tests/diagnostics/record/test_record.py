"""record() finds every host call, and every elided callback of the programs that ran."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active
from tests.interface import Status, summarize


def test_matrix_vector_product_of_a_solver_is_not_reported_as_unused():
    def matvec(x):
        return jaxcb.pure_callback(lambda x: 2 * x, x, x)

    def solve(b):
        return jax.scipy.sparse.linalg.cg(matvec, b)[0]

    with jaxcb.record() as recorded:
        result = jax.jit(solve)(jnp.ones(3))
    np.testing.assert_allclose(result, 0.5)
    assert recorded.recording.elisions == ()


double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def elided(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return [(e.site.line, e.program, e.status) for e in recorded.recording.elisions]


def unused_and_used(x):
    double(x)
    return double(x + 1)


@pytest.mark.parametrize(
    "run",
    [
        lambda: jax.make_jaxpr(unused_and_used)(1.0),
        lambda: jax.eval_shape(unused_and_used, 1.0),
        lambda: jax.jit(unused_and_used).lower(1.0),
        lambda: jax.jit(lambda x: x + 1)(1.0),
    ],
    ids=["make_jaxpr", "eval_shape", "lower", "another program"],
)
def test_tracing_alone_is_never_reported_as_an_elision(run):
    with jaxcb.record() as recorded:
        run()
        jax.jit(lambda x: x - 1)(1.0)  # the next compiled program does not inherit the callback
    assert recorded.recording.elisions == ()
    assert len(recorded.recording) == 0


def called(x):
    """Call ours and JAX's, of every flavor that JAX may drop."""
    jaxcb.debug(print)(x)
    jax.debug.callback(print, x)
    y = jax.experimental.io_callback(lambda x: x, jax.ShapeDtypeStruct((), np.float32), x)
    return double(x) + y


@pytest.mark.kept
@pytest.mark.parametrize(
    "look",
    [
        lambda x: jax.make_jaxpr(called)(x),
        lambda x: jax.eval_shape(called, x),
        lambda x: jax.eval_shape(lambda x: jax.lax.while_loop(lambda x: x < 9, called, x), x),
        lambda x: jax.jit(called).eval_shape(x),
        lambda x: jax.jit(called).trace(x),
        lambda x: jax.closure_convert(called, x),
    ],
    ids=["make_jaxpr", "eval_shape", "of a loop", "of a jit", "trace", "closure_convert"],
)
def test_callback_in_a_function_that_jax_only_looks_at_is_not_reported_as_unused(look):
    def f(x):
        look(x)
        return x + 1

    jax.clear_caches()
    with jaxcb.observe_jax() as recorded:
        jax.jit(f)(1.0)
    assert summarize(recorded.recording) == []


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad], ids=["plain", "grad"])
def test_function_whose_root_is_found_is_not_reported_as_never_called(transform):
    """JAX traces it by itself, too, for a derivative that may never be taken."""
    called = []

    @jaxcb.debug
    def log(x):
        called.append(float(x))

    def square_root(a):
        def f(x):
            log(jax.lax.stop_gradient(x))
            return x * x - a

        step = lambda f, x: jax.lax.fori_loop(0, 3, lambda _, x: x - f(x) / 4, x)  # noqa: E731
        return jax.lax.custom_root(f, a, step, lambda g, y: y / 2)

    with jaxcb.record() as recorded:
        jax.jit(transform(square_root))(2.0)
        jax.effects_barrier()
    assert len(recorded.recording) == len(called) >= 3
    assert {one.consequence for one in summarize(recorded.recording)} == {"kept"}


@pytest.mark.kept
def test_function_that_is_transposed_is_not_reported_as_unused():
    """JAX calls the transpose; the function itself has no value to make."""

    def back(ct):
        return 2 * ct

    scale = jaxcb.pure(lambda x: 2 * x, result="x", linear="x")
    scale.deftranspose(back)
    with jaxcb.record() as recorded:
        jax.jit(lambda x: jax.linear_transpose(scale, x)(x)[0])(np.float32(1)).block_until_ready()
    assert [one.consequence for one in summarize(recorded.recording)] == ["not_needed", "kept"]
    assert "never called" not in str(recorded.recording)


@pytest.mark.kept
def test_callback_that_jax_looked_at_is_still_reported_where_its_result_is_unused():
    def f(x):
        jax.eval_shape(double, x)
        double(x)
        return x

    with jaxcb.record() as recorded:
        jax.jit(f)(1.0)
    (summary,) = summarize(recorded.recording)
    assert (summary.site.line, summary.status) == (f.__code__.co_firstlineno + 2, Status.UNUSED)


def test_calls_and_expected_calls_are_counted_beyond_the_capacity():
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: double(x), x))
    with jaxcb.record(capacity=3) as recorded:
        f(1.0), f(1.0).block_until_ready()
    (summary,) = summarize(recorded.recording)
    assert (summary.calls, recorded.recording.overflow, summary.expected) == (6, 3, 6)


def test_blocks_can_be_nested():
    with jaxcb.record() as outer:
        double(1.0)
        with jaxcb.record() as inner:
            double(2.0)
        double(3.0)
    assert (len(inner.recording), len(outer.recording)) == (1, 3)


def test_recording_is_available_only_after_the_block():
    with (
        jaxcb.record() as recorded,
        pytest.raises(RuntimeError, match="before its `with` block has ended"),
    ):
        recorded.recording  # noqa: B018
    assert len(recorded.recording) == 0


def test_calls_of_a_program_still_running_at_the_end_of_the_block_are_recorded():
    f = jax.jit(lambda x: double((x @ x)[0, 0]))
    g = jax.jit(lambda x: x @ x / 300)
    x = jnp.ones((300, 300))
    f(x).block_until_ready(), g(x).block_until_ready()
    for _ in range(10):
        with jaxcb.record() as recorded:
            y = f(g(g(g(x))))
        assert len(recorded.recording) == 1
        del y


@pytest.mark.long
def test_block_waits_only_if_a_program_has_our_callbacks(in_process):
    """Other programs may keep running when a block or a cell ends."""
    code = """
import jax, jupyter_jaxcb as jaxcb
def waits(): raise AssertionError("waited")
jax.effects_barrier = waits
f = jaxcb.pure(lambda x: x, result=lambda x: x)
with jaxcb.record():
    f(jax.jit(lambda x: x + 1)(1.0))
try:
    with jaxcb.record():
        jax.jit(f)(1.0)
except AssertionError:
    print("waited for ours only")
"""
    assert in_process(code).stdout == "waited for ours only\n"


def test_calls_on_one_thread_of_xla_are_calls_of_one_thread():
    """Python forgets a thread that it has not started after each call."""
    seen = []

    def host(x):
        seen.append(threading.get_ident())
        return x

    f = jaxcb.io(host, result="x")
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, x: f(x), x))
    big = jax.jit(lambda m: (m @ m @ m @ m)[0, 0] * 0)

    def work():
        with jaxcb.record() as recorded:
            loop(big(jnp.ones((900, 900)))).block_until_ready()
        recordings.append(recorded.recording)

    recordings: list[jaxcb.Recording] = []
    loop(big(jnp.ones((900, 900)))).block_until_ready()
    seen.clear()
    # In a new thread, where no host call has failed.
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert thread.ident not in seen  # its operand was still being computed
    numbers = recordings[0].calls["thread"].tolist()
    assert len(recordings[0].threads) == len(set(numbers)) == len(set(seen))


def test_blocks_of_several_threads_each_get_their_own_calls():
    """The threads share a recorder, which stops when the last block ends."""
    found = []

    def work():
        for _ in range(60):
            with jaxcb.record() as recorded:
                for _ in range(3):
                    double(1.0)
            name = threading.current_thread().name
            names = recorded.recording.threads
            calls = [call for call in recorded.recording if names[call.thread] == name]
            found.append(len(calls))

    threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 180


def test_environment_has_the_jax_version_and_the_backend():
    with jaxcb.record() as recorded:
        pass
    assert recorded.recording.environment == {"jax": jax.__version__, "backend": "cpu"}


@pytest.mark.parametrize("begin", [jaxcb.record, jaxcb.observe_jax, jaxcb.profile])
@pytest.mark.parametrize("capacity", [-1, 2.5, "a", True, None])
def test_capacity_that_is_no_number_of_calls_is_refused_at_once(begin, capacity):
    with pytest.raises(ValueError, match=r"capacity is .*, not a number of host calls\. Try capa"):
        begin(capacity)
    assert active() is None


def test_capacity_zero_counts_calls_and_keeps_none():
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    with jaxcb.record(0) as r:
        double(1.0)
    assert (len(r.recording), r.recording.overflow) == (0, 1)


def test_place_of_a_site_is_its_file_and_line_and_where_it_is_ambiguous_its_column():
    double = jaxcb.pure(result="x")(lambda x: 2 * x)
    with jaxcb.record() as r:
        double(1.0)
        double(2.0), double(3.0)
    sites = [r.recording.lowered[call.lowered].site for call in r.recording]
    line = sites[0].line
    assert [r.recording.where(site) for site in sites] == [
        f"test_record.py:{line}",
        f"test_record.py:{line + 1}",
        f"test_record.py:{line + 1}",
    ]
