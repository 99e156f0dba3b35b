"""JAX inside a host function is reported before a call can deadlock."""

import functools
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import note_words

CAN_BLOCK = jax.__version_info__ < (0, 12)
SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.arange(3, dtype=np.float32)


@jax.jit
def jitted(x):
    return x + 1


def norm(x):
    return jnp.linalg.norm(x)


class Model:
    solvers = (np.sin, jitted)

    def layer(self, x):
        return jax.nn.relu(x)[0]

    def solve(self, x):
        return self.solvers[1](x)

    def __call__(self, x):
        return getattr(self, "layer", None)(x)


MODEL = Model()
CONFIG = types.SimpleNamespace(solver=jitted)
SOLVERS = {"exact": np.linalg.norm, "fast": jitted}


def local_imports(x):
    import jax.numpy as other
    from jax import lax as also

    return [other.sum(also.neg(value)) for value in x]


@functools.wraps(norm)
def decorated(x):
    return norm(x)


def with_default(x, solver=jitted, *, norm=None):
    return solver(x)


def loop(x):
    for solver in SOLVERS.values():
        x = solver(x)
    return x


USES = {
    "itself": (jnp.sum, "jax.numpy.sum"),
    "jitted itself": (jax.jit(lambda x: x[0]), "<lambda> is itself a JAX function, as made by"),
    "transformation": (lambda x: jax.vmap(np.sin)(x)[0], "jax.vmap"),
    "helper": (lambda x: norm(x), "jax.numpy.linalg.norm"),
    "method": (MODEL.layer, "jax.nn.relu"),
    "object": (MODEL, "jax.nn.relu"),
    "ufunc": (lambda x: jnp.add.reduce(x), "jax.numpy.add"),
    "imports in it": (local_imports, "jax.numpy.sum"),
    "decorated": (decorated, "jax.numpy.linalg.norm"),
    "partial of JAX": (functools.partial(jnp.dot, jnp.ones(3)), "jax.numpy.dot"),
    "keyword of a partial": (functools.partial(with_default, solver=jax.nn.relu), "jax.nn.relu"),
    "default": (with_default, "solver"),
    "field": (lambda x: CONFIG.solver(x), "CONFIG.solver"),
    "entry of an attribute": (MODEL.solve, "self.solvers[1]"),
    "loop over a dict": (loop, "SOLVERS['fast']"),
}


def shadowed(x):
    jnp = np
    return jnp.max(x)


def other_entry(x):
    return (SOLVERS, SOLVERS.get("exact")(x))[1]


def dtypes(x):
    assert jnp.shape(x) == (3,) and jnp.issubdtype(x.dtype, jnp.floating)
    return np.asarray(jax.tree.map(np.sum, x), jnp.float32) * jnp.pi


HARMLESS = {
    "names that compute nothing": dtypes,
    "local name": shadowed,
    "parameter": lambda x, jnp=np: jnp.max(x),
    "another entry": other_entry,
    "another argument of a partial": functools.partial(with_default, solver=np.sin),
    "attribute of a jitted function": lambda x: jitted.__name__ and jax.device_get(x)[0],
    "builtin": max,
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


@pytest.mark.parametrize(("function", "name"), USES.values(), ids=USES)
def test_use_of_jax_is_reported(function, name):
    seen, (note,) = reported(function)
    assert name in note
    assert len(seen) == CAN_BLOCK
    for warning in seen:
        text = str(warning.message)
        assert name in text and "test_reentry.py" in text
        assert 'jax.config.update("jax_cpu_enable_async_dispatch", False)' in text


WITHOUT_SOURCE = {
    "jnp.linalg.norm(x)": "jax.numpy.linalg.norm",
    "np.max(jitted(x))": "jitted",
    "(lambda y: jax.lax.exp(y))(x[0])": "jax.lax.exp",
    "SOLVERS['fast'](x)": "SOLVERS['fast']",
    "SOLVERS['exact'](x)": "",
    "np.max(x) + jnp.pi": "",
    "(jnp, 'a b'.partition(' ')) and x[0]": "",
}


@pytest.mark.parametrize(("code", "name"), WITHOUT_SOURCE.items(), ids=WITHOUT_SOURCE)
def test_use_of_jax_is_reported_without_source(code, name):
    made = {}
    exec(f"def host(x):\n return {code}", globals(), made)
    _, notes = reported(made["host"])
    assert [name in note for note in notes] == [True] * bool(name)


@pytest.mark.parametrize("function", HARMLESS.values(), ids=HARMLESS)
def test_what_computes_nothing_in_jax_is_not_reported(function):
    assert reported(function) == ([], ())


def test_each_body_causes_one_warning_at_the_line_that_uses_jax():
    def host(x):
        y = x + 1
        return jnp.max(y)

    seen, (note,) = reported(host)
    line = host.__code__.co_firstlineno + 2
    assert f"(jax.numpy.max, test_reentry.py:{line})" in note
    assert [(w.filename, w.lineno) for w in seen] == [(__file__, line)] * CAN_BLOCK
    assert reported(host) == ([], (note,))


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


def test_callback_in_a_host_function_is_reported_at_the_line_that_calls_it():
    """The line is in the user's code, not in this package."""
    inner = jaxcb.pure(lambda x: x, result="x")
    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="calls inner"):
        outer = jaxcb.pure(lambda x: np.asarray(inner(x)), result="x")
    (finding,) = jaxcb.check(outer, X).findings
    assert "it uses JAX: test_reentry.py:" in finding.what


def test_callback_that_a_helper_calls_is_reported_with_advice():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    def step(x):
        return x + slope(x)

    def solve(x):
        return step(x)

    with pytest.warns(jaxcb.JaxInHostFunctionWarning, match="pure callback solve calls slope") as w:
        jaxcb.pure(solve, result="x")
    (warning,) = w
    assert "%%jax_callback pure solve" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, step.__code__.co_firstlineno + 1)


def test_wrapped_python_function_of_a_callback_may_be_called():
    @jaxcb.pure(result="x")
    def slope(x):
        return -x

    solve = jaxcb.pure(lambda x: x + slope.__wrapped__(x), result="x")
    assert solve(np.float32(3)) == 0


def test_method_with_the_name_of_a_callback_is_not_it_where_the_source_cannot_be_read(tmp_path):
    """A page of documentation has lines, but they are not the function's."""
    page = tmp_path / "page.md"
    page.write_text("# Factors\n\n" + "Each is computed once.\n" * 9)
    code = """
import numpy as np
@pure(result="x")
def solve(x): return x
class Factor:
    def solve(self, x): return 2 * x
def factor(): return Factor()
@pure(result="x")
def twice(x): return factor().solve(x)
"""
    names = {"pure": jaxcb.pure}
    exec(compile(code, str(page), "exec"), names)  # a warning is an error here
    assert names["twice"](np.float32(3)) == 6
