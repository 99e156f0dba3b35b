"""A recording has the compile time of each program, and why a call site was compiled again."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Aval
from jupyter_jaxcb.report import summarize
from tests._threads import in_threads

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
ANOTHER = "each time for a new function object"
THREE = jnp.ones(3)


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def recorded(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return recorded.recording


def notes(run):
    return [note for summary in summarize(recorded(run)) for note in summary.notes]


def compilations(run):
    return recorded(run).compilations


def test_note_about_another_compilation_names_the_shapes():
    f = jax.jit(lambda x: double(x))
    assert notes(lambda: [f(THREE), f(jnp.ones(4)), f(THREE)]) == [
        "jit__lambda was compiled 2 times, for (float32[3]), (float32[4])"
    ]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.vmap], ids=["", "vmap"])
def test_lambda_jitted_in_a_loop_is_a_new_function_each_time(wrap):
    (note,) = notes(lambda: [jax.jit(wrap(lambda x: double(x)))(THREE) for _ in range(3)])
    assert note.startswith(f"jit__lambda was compiled 3 times, {ANOTHER}")


def helper(x):
    return double(x)


def f(x):
    return helper(x) + 1


def g(x):
    return helper(x) * 2


FIRST, SECOND = (lambda x: helper(x) + 1), (lambda x: helper(x) * 2)


@jaxcb.pure(result="x", vmap_method="expand_dims")
def sine(x):
    return np.sin(x)


sine.defjvp(lambda primals, tangents: (sine(*primals), sine(primals[0] + np.pi / 2) * tangents[0]))


@pytest.mark.parametrize(
    ("functions", "args"),
    [
        ([f, f, f], [THREE] * 3),
        ([f, g], [THREE] * 2),
        ([FIRST, SECOND], [THREE] * 2),
        ([FIRST, SECOND], [THREE, jnp.ones(4)]),
        ([jax.vmap(FIRST), jax.vmap(SECOND)], [THREE] * 2),
        (
            [jax.vmap(sine), jax.vmap(jax.grad(sine)), jax.vmap(jax.grad(jax.grad(sine)))],
            [THREE] * 3,
        ),
        ([jax.vmap(sine), jax.grad(sine)], [THREE, 1.0]),
    ],
    ids=[
        "one function jitted again",
        "named functions",
        "lambdas",
        "lambdas for other shapes",
        "vmapped lambdas",
        "a function and its derivatives",
        "vmap and gradient, whose wrappers have the same code",
    ],
)
def test_functions_with_a_common_helper_are_not_one_function_compiled_again(functions, args):
    jitted = [jax.jit(function) for function in functions]
    assert notes(lambda: [call(x) for call, x in zip(jitted, args, strict=True)]) == []


@pytest.mark.parametrize("ahead", [False, True], ids=["run", "ahead of time"])
def test_function_with_two_static_arguments_is_not_called_a_new_function(ahead):
    f = jax.jit(lambda x, n: double(x) + n, static_argnums=1)
    run = (lambda n: f.lower(1.0, n).compile()(1.0)) if ahead else lambda n: f(1.0, n)
    found = " ".join(notes(lambda: [run(1), run(2)]))
    assert "function object" not in found
    assert ahead or ("for arguments of the same shapes: " in found and "static argum" in found)


def test_number_in_a_loop_is_weakly_typed_the_first_time():
    f = jax.jit(lambda state, scale: double(state["x"]) * scale)

    def run():
        x = 1.0
        for _ in range(3):
            x = f({"x": x}, np.float32(0.5))
        return x

    (note,) = notes(run)
    assert "2 times, because state['x'] was weakly typed (as Python numbers are)" in note
    assert "pass jnp.asarray(state['x'], jnp.float32)" in note


def test_second_block_has_no_note_about_compilations_of_the_first():
    f = jax.jit(lambda x: double(x))
    assert notes(lambda: f(THREE)) == []
    assert notes(lambda: [f(jnp.ones(4)), f(THREE)]) == []


def test_each_program_with_our_callbacks_is_one_compilation():
    def f(x):
        return double(x) + double(x + 1)

    def g(x):
        double(x)
        return x

    def other(x):
        return x + 1

    def jaxs(x):
        return jax.pure_callback(lambda x: x, x, x)

    found = compilations(lambda: [jax.jit(h)(2.0) for h in (f, g, other, jaxs, f)])
    assert [compilation.program.name for compilation in found] == ["jit_f", "jit_g"]
    assert all(compilation.lower_ns > 0 and compilation.compile_ns > 0 for compilation in found)
    assert [compilation.arguments for compilation in found] == [(Aval((), "float32"),)] * 2
    assert len({compilation.function for compilation in found} - {None}) == 2
    assert len({compilation.program for compilation in found}) == 2


def test_eager_calls_and_already_compiled_programs_are_not_compilations():
    f = jax.jit(lambda x: double(x))
    assert len(compilations(lambda: f(1.0))) == 1
    assert compilations(lambda: [f(2.0), double(3.0)]) == ()


def test_lowering_without_compiling_is_not_a_compilation():
    f = jax.jit(lambda x: double(x))
    lowered = []
    assert compilations(lambda: lowered.append(f.lower(1.0))) == ()
    assert len(compilations(lambda: lowered[0].compile()(1.0))) == 1


def test_compilations_in_other_threads_are_recorded():
    work = lambda _: jax.jit(lambda x: double(x))(1.0)  # noqa: E731
    found = compilations(lambda: in_threads(work, range(4)))
    assert len(found) == len({compilation.program for compilation in found}) == 4


@pytest.mark.long
@pytest.mark.parametrize("cached", [True, False], ids=["cache on", "cache off"])
def test_note_says_that_the_persistent_cache_does_not_store_a_program(in_process, cached, tmp_path):
    """JAX up to 0.10 does not store programs with callbacks, as the files in the cache show."""
    program = Path(__file__).with_name("cached.py")
    found = in_process(program, tmp_path if cached else "").value
    old = jax.__version_info__ < (0, 11)
    assert (found["others"], found["kept"]) == (int(cached), int(cached and not old))
    expected = cached and old
    assert [f"{jax.__version__} does not store" in note for note in found["called"]] == (
        [True] * expected
    )
    assert found["unused"] == []  # its compiled program has no callback left
    assert found["flags"] == {"jit_with_callback": expected, "jit_with_unused_callback": False}
