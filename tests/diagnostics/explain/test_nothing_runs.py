"""`explain` calls no host function, is not recorded, and leaves JAX unchanged."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active
from tests._threads import in_threads
from tests.interface import Status
from tests.stack.elision._battery import Hosts

from ._same import sorted_facts

X = np.arange(1, 4, dtype=np.float32)


def many_calls(h):
    """Return a function with callbacks of three flavors: looped, vmapped, unused and so on."""
    a, b, c, d, e = h.pure("a"), h.io("b", ordered=True), h.debug("c"), h.pure("d"), h.pure("e")

    def f(x):
        c(x)
        d(x)
        y = jax.vmap(a)(x) + lax.scan(lambda s, _: (b(s), None), x, length=3)[0]
        return y + jnp.where(False, e(x), x) + a(X)  # the last one has no traced argument

    return f


def parts_of_jax():
    """Return the functions in those modules of JAX that recording patches."""
    modules = [module for module in vars(jax._src).values() if hasattr(module, "__file__")]
    from jax._src import api, compiler, dispatch, pjit
    from jax._src.interpreters import mlir, pxla

    modules += [api, compiler, dispatch, pjit, mlir, pxla]
    return {
        (module.__name__, name): value
        for module in modules
        for name, value in vars(module).items()
        if callable(value)
    } | {
        ("ExecuteReplicated", name): value
        for name, value in vars(pxla.ExecuteReplicated).items()
        if callable(value)
    }


@pytest.mark.parametrize("jitted", [False, True])
def test_no_host_function_is_called(jitted):
    hosts = Hosts()
    f = many_calls(hosts)
    recording = jaxcb.explain(jax.jit(f) if jitted else f)(X)
    jaxcb.explain_matrix(jax.jit(f) if jitted else f)(X)
    jax.effects_barrier()
    assert not hosts.calls
    assert {o.status for o in recording.outcomes} == {
        Status.KEPT,
        Status.UNUSED,
        Status.OPTIMIZED_AWAY,
    }


def test_surrounding_block_does_not_record_an_explanation():
    hosts = Hosts()
    f, g = many_calls(hosts), many_calls(hosts)
    with jaxcb.record() as recorded:
        jaxcb.explain(f)(X)
        jaxcb.explain_matrix(jax.jit(g))(X)
    recording = recorded.recording
    assert not recording.bound
    assert not recording.lowered
    assert not recording.outcomes
    assert not recording.compilations
    assert not recording.runs
    assert len(recording) == 0
    assert not recording.ahead


def test_block_records_runs_but_no_explanations():
    hosts, run_hosts = Hosts(), Hosts()
    with jaxcb.record() as expected:
        jax.block_until_ready(jax.jit(many_calls(run_hosts))(X))
    f = jax.jit(many_calls(hosts))
    with jaxcb.record() as recorded:
        jaxcb.explain(many_calls(hosts))(X)
        jax.block_until_ready(f(X))
        jaxcb.explain(many_calls(hosts))(X)
    assert sorted_facts(recorded.recording) == sorted_facts(expected.recording)
    assert len(recorded.recording) == len(expected.recording)
    assert hosts.calls == run_hosts.calls


def test_block_in_another_thread_does_not_record_an_explanation():
    hosts, entered, explained_once, recordings = Hosts(), threading.Event(), threading.Event(), []

    def record():
        with jaxcb.record() as recorded:
            entered.set()
            explained_once.wait(60)
        recordings.append(recorded.recording)

    thread = threading.Thread(target=record)
    thread.start()
    entered.wait(60)
    explained = jaxcb.explain(many_calls(hosts))(X)
    explained_once.set()
    thread.join()
    assert explained.outcomes
    assert not recordings[0].bound
    assert not recordings[0].outcomes
    assert not recordings[0].lowered
    assert not recordings[0].compilations


def test_each_of_many_threads_gets_the_explanation_of_its_function():
    hosts, explanations = Hosts(), {}

    def explain_in_thread(number):
        a = hosts.pure(f"a{number}")
        explanations[number] = jaxcb.explain(lambda x: a(x) + jax.vmap(a)(x))(X)

    in_threads(explain_in_thread, range(8))
    assert not hosts.calls
    for number, recording in explanations.items():
        assert {o.site.function for o in recording.outcomes} == {f"a{number}"}
        assert sorted(o.compiled for o in recording.outcomes) == [1, 3]
    assert len(explanations) == 8


def test_jax_is_unchanged():
    hosts = Hosts()
    jaxcb.explain(many_calls(hosts))(X)  # the first explanation imports some modules
    before = parts_of_jax()
    jaxcb.explain(many_calls(hosts))(X)
    jaxcb.explain_matrix(many_calls(hosts))(X)
    with pytest.raises(ZeroDivisionError):
        jaxcb.explain(lambda x: 1 / 0)(X)
    assert parts_of_jax() == before
    assert active() is None


def test_recording_works_after_an_error():
    hosts = Hosts()
    a = hosts.pure("a")
    with jaxcb.record() as recorded:
        with pytest.raises(KeyError):
            jaxcb.explain(lambda x: {}[(a(x), "k")[1]])(X)
        jax.jit(lambda x: a(x))(X)
    assert [o.status for o in recorded.recording.outcomes] == [Status.KEPT]
    assert len(recorded.recording) == 1
    assert active() is None


def test_run_after_an_explanation_compiles_once_and_is_recorded(compiles):
    hosts = Hosts()
    f = jax.jit(hosts.pure("a"))
    jaxcb.explain(f)(X)
    with compiles() as counted, jaxcb.record() as recorded:
        for _ in range(3):
            jax.block_until_ready(f(X))
    assert counted.count == 1
    assert hosts.calls == {"a": 3}
    assert len(recorded.recording) == 3
    jaxcb.explain(f)(X)
    with compiles() as counted:
        jax.block_until_ready(f(X))
    assert counted.count == 0


def test_arguments_are_not_donated_and_not_changed():
    hosts = Hosts()
    a = hosts.pure("a")
    x = jnp.asarray(X)
    f = jax.jit(lambda x: a(x) + 1, donate_argnums=0)
    assert jaxcb.explain(f)(x).outcomes[0].compiled == 1
    assert not x.is_deleted()
    np.testing.assert_array_equal(x, X)


def test_explanation_does_not_keep_the_function_alive():
    class Weights:
        def __init__(self):
            self.w = jnp.asarray(X)

        def __call__(self, x):
            return jaxcb.pure_callback(lambda y: y, x, x) * self.w

    model = Weights()
    reference = weakref.ref(model)
    recording = jaxcb.explain(model)(X)
    del model
    jax.clear_caches()
    gc.collect()
    assert recording.outcomes
    assert reference() is None


def test_function_may_be_explained_while_jax_traces_another():
    hosts, explained = Hosts(), []
    a = hosts.pure("a")

    def f(x):
        explained.append(jaxcb.explain(lambda y: (a(y), y)[1])(X))
        return a(x)

    with jaxcb.record() as recorded:
        jax.block_until_ready(jax.jit(f)(X))
    assert [o.status for o in explained[0].outcomes] == [Status.UNUSED]
    assert [o.status for o in recorded.recording.outcomes] == [Status.KEPT]
    assert hosts.calls == {"a": 1}


def test_calls_in_a_loop_are_not_hoisted_under_disable_jit():
    hosts = Hosts()
    a = hosts.pure("a")
    f = lambda x: lax.scan(lambda c, _: (a(c), None), x, length=3)[0]  # noqa: E731
    with jax.disable_jit():
        recording = jaxcb.explain(f)(X)
    assert {o.status for o in recording.outcomes} == {Status.KEPT}
    assert sum(o.compiled for o in recording.outcomes) == 3
