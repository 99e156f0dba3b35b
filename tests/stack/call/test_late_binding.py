"""Running a cell or module again replaces the functions that programs call, and no others."""

import contextlib
import gc
import threading
import weakref

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.record import Unrecorded

SCALAR = jax.ShapeDtypeStruct((), np.float32)
HOST = "@jaxcb.pure(result='x')\ndef host(x): return x + {}"


def test_rerun_cell_updates_compiled_programs_without_tracing(notebook, compiles):
    notebook.run(HOST.format(1), "a")
    traces = []

    @jax.jit
    def f(x):
        traces.append(1)
        return notebook.names["host"](x)

    assert float(f(1.0)) == 2.0
    for n in (10, 100):
        notebook.run(HOST.format(n), "a")
        with compiles() as compiled, jaxcb.record() as recorded:
            assert float(f(1.0)) == 1.0 + n
        assert (len(traces), compiled.count) == (1, 0)
        assert not recorded.recording.stale
    assert [call.version for call in recorded.recording] == [3]


@pytest.mark.parametrize("around", [contextlib.nullcontext, Unrecorded], ids=["", "off"])
def test_calls_before_and_after_a_rerun_have_the_version_that_ran(notebook, around):
    notebook.run(HOST.format(1), "a")
    f = jax.jit(lambda x: notebook.names["host"](x))
    with jaxcb.record() as recorded:
        before = [float(f(0.0)) for _ in range(6)]
        with around():
            notebook.run(HOST.format(10), "a")
        after = [float(f(0.0)) for _ in range(6)]
    assert (before, after) == ([1.0] * 6, [10.0] * 6)
    versions = np.array([call.version for call in recorded.recording])
    assert (versions - versions[0]).tolist() == [0] * 6 + [1] * 6


RULES = {
    "defjvp": "@host.defjvp\ndef rule(p, t): return host(*p), {n} * p[0] ** ({n} - 1) * t[0]",
    "defvjp": "host.defvjp(lambda x: (host(x), x), lambda x, ct: ({n} * x ** ({n} - 1) * ct,))",
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_program_with_another_derivative_rule_keeps_the_function_of_its_rule(notebook, rule):
    cell = "@jaxcb.pure(result='x')\ndef host(x): return x**{n}{more}\n" + rule
    notebook.run(cell.format(n=2, more=""), "a")
    f = jax.jit(jax.value_and_grad(lambda x: notebook.names["host"](x)))
    assert [float(y) for y in f(3.0)] == [9, 6]
    notebook.run("# a comment\n" + cell.format(n=2, more=" + 1"), "a")
    assert [float(y) for y in f(3.0)] == [10, 6], "the rule is the same, on another line"
    notebook.run(cell.format(n=3, more=""), "a")
    with jaxcb.record() as recorded:
        assert [float(y) for y in f(3.0)] == [10, 6]
    assert len(recorded.recording.stale) == 1
    assert [float(y) for y in jax.value_and_grad(notebook.names["host"])(3.0)] == [27, 27]


SOLVER = [
    "@jaxcb.pure(result='b', linear='b')\ndef solve(a, b): return b / a**{n}",
    "@solve.deftranspose\ndef transposed(a, ct): return ct / a**{n}",
    "solve.defresidual(lambda a, x, b: a**{n} * x - b)",
]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)], ids=["", "residual first"])
def test_program_with_another_residual_keeps_the_solver_and_the_transpose(notebook, order):
    cell = "\n".join(SOLVER[n] for n in order)
    notebook.run(cell.format(n=1), "a")
    f = jax.jit(jax.value_and_grad(lambda a: notebook.names["solve"](a, 4.0)))
    assert [float(y) for y in f(2.0)] == [2, -1]
    notebook.run(cell.format(n=2), "a")
    assert [float(y) for y in f(2.0)] == [2, -1]
    assert [float(y) for y in jax.value_and_grad(notebook.names["solve"])(2.0, 4.0)] == [1, -1]


@pytest.mark.parametrize("flavor", ["pure", "io"])
@pytest.mark.parametrize("option", ["cast=True", "arrays='jax'", "executor='threads:2'"])
def test_registration_with_another_option_leaves_compiled_programs_alone(notebook, flavor, option):
    registered = f"import numpy as np\n@jaxcb.{flavor}(result='x'{{}})\n"
    cell = registered + "def host(x): return np.float32(x + {})"
    notebook.run(cell.format("", 1), "a")
    f = jax.jit(notebook.names["host"])
    assert float(f(1.0)) == 2.0
    notebook.run(cell.format(f", {option}", 10), "a")
    assert (float(f(1.0)), float(notebook.names["host"](1.0))) == (2.0, 11.0)


def test_reloaded_module_updates_compiled_programs(module):
    first = module(HOST.format(1)).host
    f = jax.jit(lambda x: first(x))
    assert float(f(1.0)) == 2.0
    for n in (10, 100):
        module(HOST.format(n))
        assert float(f(1.0)) == float(first(1.0)) == 1.0 + n


def test_new_interface_makes_a_new_callback_and_leaves_old_programs_alone(module):
    old = module(HOST.format(1)).host
    f = jax.jit(lambda x: old(x))
    assert float(f(1.0)) == 2.0
    new = module("@jaxcb.pure(result='x', vmap_method='expand_dims')\ndef host(x): return x + 9")
    assert float(f(1.0)) == 2.0
    assert float(jax.jit(lambda x: new.host(x))(1.0)) == 10.0
    assert old.host.replaced


def test_host_function_lives_as_long_as_its_program():
    class Host:
        def __call__(self, x):
            return x

    def run():
        host = Host()
        jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))(1.0).block_until_ready()
        return weakref.ref(host)

    gone = run()
    jax.clear_caches()
    gc.collect()
    assert gone() is None


def test_replaced_body_is_freed(notebook):
    class Big:
        pass

    notebook.names["big"] = Big()
    gone = weakref.ref(notebook.names["big"])
    notebook.run("@jaxcb.pure(result='x')\ndef host(x, big=big): return x", "a")
    del notebook.names["big"]
    notebook.run("@jaxcb.pure(result='x')\ndef host(x): return x", "a")
    gc.collect()
    assert gone() is None


def test_registrations_of_one_function_with_different_options_coexist(notebook):
    """The registrations have different names, and programs keep calling the one they used."""
    define = (
        "def host(x): return x + {}\n"
        "one = jaxcb.pure(host, result='x')\n"
        "whole = jaxcb.pure(host, result='x', vmap_method='expand_dims')"
    )
    notebook.run(define.format(1), "a")
    one, whole = notebook.names["one"], notebook.names["whole"]
    with jaxcb.record() as recorded:
        jax.vmap(one)(np.zeros(2)), jax.vmap(whole)(np.zeros(2))
    assert len(recorded.recording) == 3
    assert not recorded.recording.stale
    notebook.run(define.format(10), "a")
    assert not one.host.replaced and not whole.host.replaced
    assert float(one(0.0)) == float(whole(0.0)) == 10.0
    notebook.run("def host(x): return x + 100\none = jaxcb.pure(host, result='x')", "a")
    assert whole.host.replaced and not one.host.replaced


def test_call_during_a_reload_runs_the_old_or_the_new_body(module):
    first = module(HOST.format(1)).host
    f = jax.jit(lambda x: first(x))
    f(0.0)
    over, seen = threading.Event(), set()

    def call():
        while not over.is_set():
            seen.add(float(f(0.0)))

    thread = threading.Thread(target=call)
    thread.start()
    for n in range(2, 12):
        module(HOST.format(n))
    over.set()
    thread.join()
    assert seen <= set(range(1, 12))
    assert float(f(0.0)) == 11.0


def test_old_and_new_registration_call_the_same_version_of_the_body(notebook):
    notebook.run(HOST.format(1), "another cell")
    first = notebook.names["host"]
    for version in (2, 3):
        notebook.run(HOST.format(version), "another cell")
        with jaxcb.record() as recorded:
            assert float(first(0.0)) == float(notebook.names["host"](0.0)) == version
        assert [call.version for call in recorded.recording] == [version, version]
