"""`explain` calls no host function, is not recorded, and leaves JAX unchanged."""

import gc
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
