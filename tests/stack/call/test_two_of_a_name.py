"""Two functions with the same name are two host functions, however they are registered."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)
HOST = "@jaxcb.pure(result='x')\ndef host(x): return x + {}"


TWO_OF_A_NAME = {
    "a redefinition": (
        "import numpy as np\n"
        "@jaxcb.pure(result='x')\ndef step(x): return np.sin(x)\n"
        "first = step\n"
        "@jaxcb.pure(result='x')\ndef step(x): return np.cos(x)\n"
        "made = [first, step]"
    ),
    "a table of def _": (
        "import numpy as np\nmade = []\n"
        "@jaxcb.pure(result='x')\ndef _(x): return np.sin(x)\n"
        "made.append(_)\n"
        "@jaxcb.pure(result='x')\ndef _(x): return np.cos(x)\n"
        "made.append(_)"
    ),
    "a function registered after the first is gone": (
        "import numpy as np\nmade = []\n"
        "def step(x): return np.tan(x)\njaxcb.pure(step, result='x')\n"
        "def step(x): return np.sin(x)\nmade.append(jaxcb.pure(step, result='x'))\n"
        "def step(x): return np.cos(x)\nmade.append(jaxcb.pure(step, result='x'))"
    ),
    "one def, run by a loop": (
        "import numpy as np\nmade = []\n"
        "for wave in (np.sin, np.cos):\n"
        "    def step(x, wave=wave): return wave(x)\n"
        "    made.append(jaxcb.pure(step, result='x'))"
    ),
    "closures with the name of another function": (
        "import functools, numpy as np\n"
        "def base(x): return x\n"
        "def make(wave):\n"
        "    @functools.wraps(base)\n"
        "    def inner(x): return wave(x)\n"
        "    return inner\n"
        "made = [jaxcb.pure(make(wave), result='x') for wave in (np.sin, np.cos)]"
    ),
}


def as_script(source, notebook, module):
    scope = {"jaxcb": jaxcb, "__name__": "__main__"}
    exec(source, scope)
    return scope["made"]


def as_module(source, notebook, module):
    return module(source).made


def as_reloaded_module(source, notebook, module):
    module(source)
    return module(source + "\n# once more").made


def as_cell(source, notebook, module):
    notebook.run(source, "a")
    return notebook.names["made"]


def as_cell_run_again(source, notebook, module):
    for _ in range(3):
        notebook.run(source, "a")
    return notebook.names["made"]


@pytest.mark.long
@pytest.mark.parametrize("source", TWO_OF_A_NAME.values(), ids=TWO_OF_A_NAME)
@pytest.mark.parametrize("define", [as_script, as_module, as_reloaded_module, as_cell,
                                 as_cell_run_again])  # fmt: skip
def test_two_functions_of_one_name_stay_distinct(define, source, notebook, module):
    made = define(source, notebook, module)
    right = pytest.approx([np.sin(1.0), np.cos(1.0)], rel=1e-6)
    with jaxcb.record() as recorded:
        assert [float(f(1.0)) for f in made] == right
        assert [float(jax.jit(lambda x, f=f: f(x))(1.0)) for f in made] == right
    assert not recorded.recording.stale


def test_source_executed_again_outside_a_cell_is_another_function():
    scope = {"jaxcb": jaxcb, "__name__": "__main__"}
    exec(HOST.format(1), scope)
    first = scope["host"]
    f = jax.jit(lambda x: first(x))
    assert float(f(1.0)) == 2.0
    exec(HOST.format(10), scope)
    with jaxcb.record() as recorded:
        assert float(f(1.0)) == float(first(1.0)) == 2.0
    assert not recorded.recording.stale


def test_closures_are_bound_permanently():
    def make(n):
        @jaxcb.pure(result="x")
        def add(x):
            return x + n

        return add

    one, two = make(1), make(2)
    f = jax.jit(lambda x: (one(x), two(x)))
    assert [float(y) for y in f(0.0)] == [1.0, 2.0]


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


def test_second_function_of_a_name_undoes_the_replacement_by_the_first(notebook):
    notebook.run(HOST.format(1), "a")
    old = notebook.names["host"]
    f = jax.jit(lambda x: old(x))
    assert float(f(0.0)) == 1.0
    with notebook.running("a"):
        cell = "ipykernel_1/1.py"
        exec(compile(HOST.format(10), cell, "exec"), notebook.names)
        first = notebook.names["host"]
        assert float(f(0.0)) == float(first(0.0)) == 10.0  # the only one so far
        exec(compile(HOST.format(100), cell, "exec"), notebook.names)
    second = notebook.names["host"]
    assert [float(g(0.0)) for g in (f, old, first, second)] == [1.0, 1.0, 10.0, 100.0]
    notebook.run(HOST.format(1000), "a")  # the only one again, but the previous run had two
    assert [float(g(0.0)) for g in (f, old, first, second)] == [1.0, 1.0, 10.0, 100.0]
