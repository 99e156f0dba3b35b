"""The end of a record() block waits for the runs dispatched in it, even if results are dropped."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.record import _record
from jupyter_jaxcb.stack import InFlight

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


PROGRAMS = {
    "jit": lambda g: jax.jit(g),
    "compiled ahead of time": lambda g: jax.jit(g).lower(jnp.float32(1)).compile(),
    "vmap of jit": lambda g: lambda x: jax.vmap(jax.jit(g))(x[None]),
    "donated": lambda g: jax.jit(g, donate_argnums=0),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("before", ["recorded", "unrecorded"])
def test_call_of_a_run_whose_result_is_dropped_is_recorded(name, before):
    g = PROGRAMS[name](lambda x: double(x))
    m = jnp.ones((900, 900))
    big = jax.jit(lambda m: (m @ m @ m @ m)[0, 0] * 0)
    with jaxcb.record() if before == "recorded" else contextlib.nullcontext():
        for _ in range(2):
            jax.block_until_ready(g(big(m)))
    for _ in range(3):
        with jaxcb.record() as recorded:
            g(big(m))
        assert len(recorded.recording) == 1


def test_block_inside_a_host_call_on_an_xla_thread_does_not_wait_for_that_call(monkeypatch):
    waits, threads, dispatching = [], set(), []

    def host(x):
        with jaxcb.record() as r:
            threads.add(threading.get_ident())
        assert len(r.recording) == 0
        return x

    f = jax.jit(lambda x: jaxcb.pure_callback(host, x, x))
    m = jnp.ones((900, 900))
    big = jax.jit(lambda m: (m @ m @ m @ m)[0, 0] * 0)

    def dispatch():
        dispatching.append(threading.get_ident())
        f(big(m)).block_until_ready()
        with jaxcb.record():
            f(big(m))

    monkeypatch.setattr(_record.time, "sleep", lambda seconds: waits.append(threading.get_ident()))
    # In a new thread, where no host call has failed.
    thread = threading.Thread(target=dispatch)
    thread.start()
    thread.join()
    assert threads - set(dispatching)
    assert set(waits) <= set(dispatching)


def test_block_warns_about_runs_it_stopped_waiting_for(monkeypatch):
    ended = threading.Event()

    def host(x):
        assert ended.wait(60)
        return x

    f = jax.jit(lambda x: jaxcb.pure_callback(host, x, x))
    m = jnp.ones((900, 900))
    big = jax.jit(lambda m: (m @ m @ m @ m @ m @ m)[0, 0] * 0)
    monkeypatch.setattr(_record, "BUDGET_SECONDS", 0.01)

    def dispatch():
        ended.set()
        f(big(m)).block_until_ready()
        ended.clear()
        with pytest.warns(UserWarning, match="still running 0.01 s after") as warned:
            with jaxcb.record() as recorded:
                dispatched.append(f(big(m)))
        assert warned[0].filename == __file__
        assert len(recorded.recording) == 0
        ended.set()
        dispatched[0].block_until_ready()

    dispatched = []
    # In a new thread, where no host call has failed.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(dispatch).result(100)


def test_program_without_results_is_in_flight_until_its_host_function_returns():
    ended = threading.Event()
    f = jax.jit(lambda x: jaxcb.debug_callback(lambda x: ended.wait(60), x))
    m = jnp.ones((900, 900))
    big = jax.jit(lambda m: (m @ m @ m @ m @ m @ m)[0, 0] * 0)

    def dispatch():
        ended.set()
        f(big(m))
        jax.effects_barrier()
        ended.clear()
        x = big(m)
        f(x)
        x.block_until_ready()
        in_flight = InFlight()
        before = in_flight.is_done()
        ended.set()
        return before, in_flight.wait(60)

    with ThreadPoolExecutor(1) as pool:  # a new thread, see above
        assert pool.submit(dispatch).result(100) == (False, True)
