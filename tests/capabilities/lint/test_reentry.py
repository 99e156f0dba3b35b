"""JAX inside a host function is reported before a call can deadlock."""

import dataclasses
import functools
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import note_words

CAN_BLOCK = jax.__version_info__ < (0, 12)
SCALAR = jax.ShapeDtypeStruct((), np.float32)
IN_FLIGHT = Path(__file__).parents[2] / "conformance" / "jax_issues" / "in_flight.py"


@jax.jit
def jitted(x):
    return x + 1


def norm(x):
    return jnp.linalg.norm(x)


class Model:
    def predict(self, x):
        return self.layer(x)

    def layer(self, x):
        return jax.nn.relu(x)[0]

    def __call__(self, x):
        return self.predict(x)


def local_imports(x):
    import jax.numpy as other
    from jax import lax as also

    return other.sum(also.neg(x))


def comprehension(x):
    return np.float32(sum([lax.exp(value) for value in x]))


def inner_function(x):
    def inner():
        return jnp.max(x)

    return inner()


def imported_whole(x):
    import jax.numpy

    return jax.numpy.min(x)


def wrapped(function):
    @functools.wraps(function)
    def call(x):
        return function(x)

    return call


def method_of(solver, x):
    return solver(x)


def with_default(x, solver=jitted, *, norm=None):
    return solver(x)


SOLVERS = {"exact": np.linalg.norm, "fast": jitted}


def entry(x):
    return SOLVERS["fast"](x)


def some_entry(x, *, which="fast"):
    return SOLVERS[which](x)


def each_entry(x):
    for solver in LIST:
        x = solver(x)
    return x


def got_entry(x, which="fast"):
    return SOLVERS.get(which)(x)


def values(x):
    return sum(solver(x) for solver in SOLVERS.values())


@dataclasses.dataclass(frozen=True)
class Config:
    solver: object = jitted


def field_of_an_object(x):
    return CONFIG.solver(x)


LIST = [np.sin, jitted]
CONFIG = Config()


class Holder:
    solvers = (np.sin, jitted)

    def solve(self, x):
        return self.solvers[1](x)


def by_name(x):
    return getattr(jnp.linalg, "norm")(x)  # noqa: B009


class ByName(Model):
    def __call__(self, x):
        return getattr(self, "predict", None)(x)


USES = {
    "a function of jax.numpy": (lambda x: jnp.max(x), "jax.numpy.max"),
    "through a helper": (lambda x: norm(x), "jax.numpy.linalg.norm"),
    "a jitted function": (lambda x: jitted(x)[0], "jitted"),
    "the host function itself": (jnp.sum, "jax.numpy.sum"),
    "a jitted host function": (
        jax.jit(lambda x: x[0]),
        "<lambda> is itself a JAX function, as made by @jax.jit",
    ),
    "a transformation": (lambda x: jax.vmap(np.sin)(x)[0], "jax.vmap"),
    "a method": (Model().predict, "jax.nn.relu"),
    "an instance": (Model(), "jax.nn.relu"),
    "an instance in a global": (lambda x: MODEL.predict(x), "jax.nn.relu"),
    "imports in the function": (local_imports, "jax.numpy.sum"),
    "an import of the whole": (imported_whole, "jax.numpy.min"),
    "a comprehension": (comprehension, "jax.lax.exp"),
    "a function in the function": (inner_function, "jax.numpy.max"),
    "a decorated function": (wrapped(norm), "jax.numpy.linalg.norm"),
    "a partial": (functools.partial(jnp.dot, jnp.ones(3)), "jax.numpy.dot"),
    "a ufunc": (lambda x: jnp.add.reduce(x), "jax.numpy.add"),
    "an argument of a partial": (functools.partial(method_of, jitted), "solver"),
    "a keyword of a partial": (functools.partial(method_of, solver=jitted), "solver"),
    "a partial of a partial": (functools.partial(functools.partial(method_of), jitted), "solver"),
    "a default argument": (with_default, "solver"),
    "an entry of a dict": (entry, "SOLVERS['fast']"),
    "any entry of a dict": (some_entry, "SOLVERS['fast']"),
    "a loop over a list": (each_entry, "LIST[1]"),
    "an entry that get returns": (got_entry, "SOLVERS['fast']"),
    "the values of a dict": (values, "SOLVERS['fast']"),
    "a field with a default": (field_of_an_object, "CONFIG.solver"),
    "an entry of an attribute": (Holder().solve, "self.solvers[1]"),
    "an attribute by its name": (by_name, "jax.numpy.linalg.norm"),
    "a field by its name": (lambda x: getattr(CONFIG, "solver", np.sin)(x), "CONFIG.solver"),
    "a method by its name": (ByName(), "jax.nn.relu"),
}
MODEL = Model()


def harmless_names(x):
    assert jnp.shape(x) == (3,) and jnp.issubdtype(x.dtype, jnp.floating)
    return np.asarray(jax.tree.map(np.sum, x), jnp.float32) * jnp.pi


def shadowed(x):
    jnp = np
    return jnp.max(x)


def other_entry(x):
    return SOLVERS["exact"](x)


def both(x, y):
    return x


def beside(x):
    return both(SOLVERS, x[0])


HARMLESS = {
    "another entry of a dict": other_entry,
    "a dict beside an index": beside,
    "another argument of a partial": functools.partial(with_default, solver=np.sin),
    "an attribute by another name": lambda x: getattr(CONFIG, "scale", np.max)(x),
    "an attribute of NumPy by its name": lambda x: getattr(np, "max", None)(x),
    "numpy": lambda x: np.max(x),
    "names that compute nothing": harmless_names,
    "a local name": shadowed,
    "a parameter": lambda x, jnp=np: jnp.max(x),
    "device_get": lambda x: jax.device_get(x)[0],
    "a builtin": max,
}


def reported(function):
    """Return the warnings and the notes of a program that calls `function`."""
    f = jax.jit(lambda x: jaxcb.pure_callback(function, SCALAR, x))
    with warnings.catch_warnings(record=True) as seen, jaxcb.record() as recorded:
        warnings.simplefilter("always")
        f.lower(X).compile()
    (outcome,) = recorded.recording.outcomes
    assert all(warning.category is jaxcb.JaxInHostFunctionWarning for warning in seen)
    return seen, tuple(map(note_words, outcome.notes))


X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(("function", "name"), USES.values(), ids=USES)
def test_use_of_jax_is_reported(function, name):
    seen, (note,) = reported(function)
    assert name in note
    assert len(seen) == CAN_BLOCK
    for warning in seen:
        text = str(warning.message)
        assert name in text and "test_reentry.py" in text
        assert 'jax.config.update("jax_cpu_enable_async_dispatch", False)' in text


@pytest.mark.parametrize("function", HARMLESS.values(), ids=HARMLESS)
def test_functions_of_jax_that_compute_nothing_are_not_reported(function):
    assert reported(function) == ([], ())


def test_reported_line_is_the_one_that_uses_jax():
    def host(x):
        y = x + 1
        return jnp.max(y)

    seen, (note,) = reported(host)
    line = host.__code__.co_firstlineno + 2
    assert f"(jax.numpy.max, test_reentry.py:{line})" in note
    assert [(warning.filename, warning.lineno) for warning in seen] == [
        (__file__, line)
    ] * CAN_BLOCK


def test_each_body_causes_one_warning():
    def host(x):
        return jnp.max(x)

    assert [len(reported(host)[0]) for _ in range(3)] == [int(CAN_BLOCK), 0, 0]
    assert reported(host)[1]  # the recording has it every time


def test_new_body_in_a_compiled_program_is_examined(notebook):
    notebook.names |= {"jax": jax, "np": np, "jnp": jnp}
    define = "@jaxcb.pure(result=jax.ShapeDtypeStruct((), np.float32))\ndef host(x): return {}"
    notebook.run(define.format("np.max(x)"), "cell")
    registered = notebook.names["host"]
    f = jax.jit(lambda x: registered(x))
    assert f(X) == 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        notebook.run(define.format("jnp.min(x)"), "cell")
    assert ["jax.numpy.min" in str(warning.message) for warning in seen] == [True] * CAN_BLOCK
    assert f(X) == 0


def test_examining_a_function_runs_no_user_code():
    class Counted:
        looked = 0

        @property
        def returned_value(self):
            Counted.looked += 1
            return np.max

        def __getattr__(self, name):
            if not name.startswith("__"):
                Counted.looked += 1
            raise AttributeError(name)

        def __call__(self, x):
            return self.returned_value(x) + self.missing

    counted = Counted()
    assert reported(counted) == ([], ())
    assert reported(lambda x: counted.returned_value(x) + counted.missing) == ([], ())
    assert Counted.looked == 0


def test_nothing_is_reported_after_the_advice_was_followed(in_process):
    program = """
        import jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        s = jax.ShapeDtypeStruct((), np.float32)
        print(jax.jit(lambda x: jaxcb.pure_callback(lambda x: jnp.max(x), s, x))(np.ones(3, "f")))
    """
    assert in_process(program, options=["-W", "error"]).stdout == "1.0\n"


@pytest.mark.skipif(not CAN_BLOCK, reason="JAX 0.12 was never seen to block")
def test_program_that_deadlocks_is_reported_first():
    """With fifty calls in flight whose host function uses JAX, it hangs, but after the warning."""
    options = json.dumps({"whose": "ours", "cores": 2, "uses": ["jnp"]})
    with subprocess.Popen(
        [sys.executable, IN_FLIGHT, options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        deadline = threading.Timer(60, process.kill)
        deadline.start()
        first = process.stderr.readline()
        process.kill()
        deadline.cancel()
    assert "JaxInHostFunctionWarning: the pure callback" in first
    assert "jax.numpy.max, in_flight.py:" in first


class Callable:
    """A callable that uses JAX, which the check must not call."""

    factor = 2

    def __call__(self, x):
        return jnp.max(x)

    def plain(self, x):
        return x[0] * self.factor


def test_using_attributes_of_a_callable_is_not_reported():
    looked_at = Callable()
    assert reported(lambda x: x[0] * looked_at.factor) == ([], ())
    assert reported(looked_at.plain) == ([], ())
    assert reported(lambda x: jitted.__name__ and x[0]) == ([], ())
    assert reported(lambda x: looked_at(x))[1]


def test_use_that_the_code_does_not_show_is_reported_when_it_runs():
    def host(x, name="max"):
        return np.asarray(getattr(jnp, name)(x))

    f = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    f.lower(X).compile()
    jax.clear_caches()  # so that jnp.max is lowered inside the host call
    with warnings.catch_warnings(record=True) as seen, jaxcb.record():
        warnings.simplefilter("always")
        for _ in range(3):
            assert jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))(X) == 2
    assert len(seen) == CAN_BLOCK
    for warning in seen:
        assert "uses JAX in its host function: in host, test_reentry.py:" in str(warning.message)
        assert (warning.filename, warning.lineno) == (__file__, host.__code__.co_firstlineno + 1)


def test_host_function_is_examined_while_another_thread_imports():
    """An import during the walk over sys.modules used to raise an error."""
    over = threading.Event()

    def imports():
        while not over.is_set():
            for number in range(50):
                sys.modules[f"of_another_thread_{number}"] = sys
            for number in range(50):
                del sys.modules[f"of_another_thread_{number}"]

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=imports)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(60):
            jax.jit(jaxcb.pure(lambda x: np.sqrt(x), result=SCALAR)).lower(np.float32(4))
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_numpy_function_in_jax_numpy_is_not_reported(tmp_path):
    """`jnp.savez` is `np.savez`."""
    assert jnp.savez is np.savez

    def host(x):
        np.savez(tmp_path / "x.npz", x=x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", jaxcb.JaxInHostFunctionWarning)
        jax.jit(jaxcb.io(host, result=None))(X)
        jax.effects_barrier()
    assert np.load(tmp_path / "x.npz")["x"].shape == np.shape(X)


def test_jitted_host_function_is_reported_when_it_is_lowered_and_when_it_runs():
    f = jax.jit(lambda x: jaxcb.pure_callback(jax.jit(lambda x: x[0]), SCALAR, x))
    with warnings.catch_warnings(record=True) as seen, jaxcb.record():
        warnings.simplefilter("always")
        assert f(X).item() == 0
    named = [
        "<lambda> is itself a JAX function, as made by @jax.jit. This may deadlock on JAX"
        in str(warning.message)
        for warning in seen
    ]
    assert named == [True, True] * CAN_BLOCK


def test_callback_in_a_host_function_is_reported_at_the_line_that_calls_it():
    """The line is in the user's code, not in this package."""
    inner = jaxcb.pure(lambda x: x, result="x")
    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="calls inner"):
        outer = jaxcb.pure(lambda x: np.asarray(inner(x)), result="x")
    (finding,) = jaxcb.check(outer, X).findings
    assert "it uses JAX: test_reentry.py:" in finding.what
