"""Functions at top level are looked up when they are called; others are bound by themselves."""

import gc
import weakref

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import _callback

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def test_new_body_reaches_compiled_programs_without_tracing(compiles):
    """N5, from a script: functions at top level are looked up when they are called."""
    scope = {"jaxcb": jaxcb, "__name__": "some_module"}
    source = "@jaxcb.pure(result='x')\ndef host(x): return x + {}"
    exec(source.format(1), scope)
    traces = []

    @jax.jit
    def f(x):
        traces.append(1)
        return scope["host"](x)

    assert float(f(1.0)) == 2.0
    exec(source.format(10), scope)
    with compiles() as compiled, jaxcb.record() as recorded:
        assert float(f(1.0)) == 11.0
    assert (len(traces), compiled.count) == (1, 0)
    assert [call.version for call in recorded.recording] == [2]


def test_new_interface_makes_a_new_callback_and_leaves_old_programs_alone():
    scope = {"jaxcb": jaxcb, "__name__": "some_module"}
    exec("@jaxcb.pure(result='x')\ndef other(x): return x + 1", scope)
    old = scope["other"]
    f = jax.jit(lambda x: old(x))
    assert float(f(1.0)) == 2.0
    exec("@jaxcb.pure(result='x', vmap_method='expand_dims')\ndef other(x): return x + 9", scope)
    assert float(f(1.0)) == 2.0
    assert float(jax.jit(lambda x: scope["other"](x))(1.0)) == 10.0
    assert old.host.replaced


def test_closures_are_bound_by_themselves():
    def make(n):
        @jaxcb.pure(result="x")
        def add(x):
            return x + n

        return add

    one, two = make(1), make(2)
    f = jax.jit(lambda x: (one(x), two(x)))
    assert [float(y) for y in f(0.0)] == [1.0, 2.0]


def test_program_keeps_its_host_function_and_lets_it_go_with_itself():
    class Host:
        def __call__(self, x):
            return x

    def run():
        host = Host()
        jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))(1.0)
        return weakref.ref(host)

    gone = run()
    jax.clear_caches()
    gc.collect()
    assert gone() is None


def test_registry_forgets_functions_that_are_gone():
    scope = {"jaxcb": jaxcb, "__name__": "short_lived"}
    exec("@jaxcb.io(result=None)\ndef f(x): pass", scope)
    assert "short_lived" in [module for module, _, _ in _callback._registered]
    scope.clear()
    gc.collect()
    assert "short_lived" not in [module for module, _, _ in _callback._registered]


def test_methods_of_two_objects_are_two_host_functions():
    class Scale:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return self.n * x

        def by(self, x):
            return self.n * x

    for host in (lambda n: Scale(n).by, Scale):
        two, three = (jaxcb.pure(host(n), result=SCALAR) for n in (2, 3))
        assert [float(two(1.0)), float(three(1.0))] == [2.0, 3.0]


@pytest.mark.parametrize(
    "source",
    [
        # closures that bear another function's name
        "import functools\n"
        "def base(x): return x\n"
        "def make(n):\n"
        "    @functools.wraps(base)\n"
        "    def inner(x): return n * x\n"
        "    return inner\n"
        "made = [jaxcb.pure(make(n), result='x') for n in (1, 2, 3)]",
        # one def, run by a loop
        "made = []\n"
        "for n in (1, 2, 3):\n"
        "    def host(x, n=n): return n * x\n"
        "    made.append(jaxcb.pure(host, result='x'))",
    ],
    ids=["wrapped closures", "loop"],
)
def test_functions_of_one_name_that_are_not_new_bodies_stay_apart(source):
    scope = {"jaxcb": jaxcb, "__name__": "module_of_loops"}
    exec(source, scope)
    assert [float(f(1.0)) for f in scope["made"]] == [1.0, 2.0, 3.0]
    assert not any(f.host.replaced for f in scope["made"])


def test_going_back_to_an_interface_revives_its_programs():
    scope = {"jaxcb": jaxcb, "__name__": "back_and_forth"}
    define = "@jaxcb.{}(result='x')\ndef host(x): return x + {}"
    exec(define.format("pure", 1), scope)
    first = scope["host"]
    f = jax.jit(lambda x: first(x))
    f(0.0)
    exec(define.format("io", 10), scope)
    with jaxcb.record() as recorded:
        assert float(f(0.0)) == 1.0
    assert len(recorded.recording.stale) == 1
    exec(define.format("pure", 100), scope)
    with jaxcb.record() as recorded:
        assert float(f(0.0)) == 100.0
    assert not recorded.recording.stale


def test_one_function_registered_with_several_options_replaces_nothing():
    """Each of them has a name of its own, and is what its programs mean to call."""
    scope = {"jaxcb": jaxcb, "__name__": "several_options"}
    define = (
        "def host(x): return x + {}\n"
        "one = jaxcb.pure(host, result='x')\n"
        "whole = jaxcb.pure(host, result='x', vmap_method='expand_dims')"
    )
    exec(define.format(1), scope)
    one, whole = scope["one"], scope["whole"]
    with jaxcb.record() as recorded:
        jax.vmap(one)(np.zeros(2)), jax.vmap(whole)(np.zeros(2))
    assert len(recorded.recording) == 3
    assert not recorded.recording.stale
    exec(define.format(10), scope)  # the cell is run again
    assert not one.host.replaced and not whole.host.replaced
    assert float(one(0.0)) == float(whole(0.0)) == 10.0
    exec("def host(x): return x + 100\none = jaxcb.pure(host, result='x')", scope)
    assert whole.host.replaced and not one.host.replaced


def test_result_function_typed_again_is_the_same_interface():
    scope = {"jaxcb": jaxcb, "__name__": "typed_again"}
    for n in (1, 10):
        exec(f"@jaxcb.pure(result=lambda x: x)\ndef host(x): return x + {n}", scope)
        if n == 1:
            first = scope["host"]
    assert first.host is scope["host"].host
