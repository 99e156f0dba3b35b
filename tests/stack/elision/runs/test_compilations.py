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
unrolled = jaxcb.pure(
    lambda x: 2 * x, result=lambda x: x, vmap_method="sequential_unrolled"
)  # fmt: skip
ANOTHER = "each time for a new function object"


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def notes(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return [note for summary in summarize(recorded.recording) for note in summary.notes]


def compilations(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return recorded.recording.compilations


def test_note_about_another_compilation_names_the_shapes():
    f = jax.jit(lambda x: double(x))
    assert notes(lambda: [f(jnp.ones(3)), f(jnp.ones(4)), f(jnp.ones(3))]) == [
        "jit__lambda was compiled 2 times, for (float32[3]), (float32[4])"
    ]


def test_lambda_jitted_in_a_loop_is_a_new_function_each_time():
    (note,) = notes(lambda: [jax.jit(lambda x: double(x))(1.0) for _ in range(3)])
    assert note.startswith(f"jit__lambda was compiled 3 times, {ANOTHER}")


def test_one_function_jitted_in_a_loop_is_compiled_once():
    def f(x):
        return double(x)

    assert notes(lambda: [jax.jit(f)(1.0) for _ in range(3)]) == []


def helper(x):
    return double(x)


def test_two_named_functions_with_a_common_helper_are_not_one_function_compiled_twice():
    def f(x):
        return helper(x) + 1

    def g(x):
        return helper(x) * 2

    assert notes(lambda: [jax.jit(f)(1.0), jax.jit(g)(1.0)]) == []


@jaxcb.pure(result="x", vmap_method="expand_dims")
def sine(x):
    return np.sin(x)


sine.defjvp(lambda primals, tangents: (sine(*primals), sine(primals[0] + np.pi / 2) * tangents[0]))


def test_function_and_its_derivatives_are_not_one_function_compiled_three_times():
    derivatives = [sine, jax.grad(sine), jax.grad(jax.grad(sine))]
    assert notes(lambda: [jax.jit(jax.vmap(f))(jnp.ones(3)) for f in derivatives]) == []


def test_vmap_and_gradient_of_a_function_are_not_one_function_compiled_twice():
    """JAX's wrappers have the same code and differ only in what they close over."""
    assert notes(lambda: [jax.jit(jax.vmap(sine))(jnp.ones(3)), jax.jit(jax.grad(sine))(1.0)]) == []


def test_two_vmapped_lambdas_are_not_one_function_compiled_twice():
    first, second = (lambda x: helper(x) + 1), (lambda x: helper(x) * 2)
    assert notes(lambda: [jax.jit(jax.vmap(f))(jnp.ones(3)) for f in (first, second)]) == []


def test_lambda_vmapped_and_jitted_in_a_loop_is_a_new_function_each_time():
    def run():
        return [jax.jit(jax.vmap(lambda x: double(x)))(jnp.ones(3)) for _ in range(3)]

    (note,) = notes(run)
    assert note.startswith(f"jit__lambda was compiled 3 times, {ANOTHER}")


@pytest.mark.parametrize("size", [3, 4])
def test_two_lambdas_with_a_common_helper_are_not_one_function_compiled_twice(size):
    """The functions differ, so a note about loops or shapes would be wrong."""
    f = jax.jit(lambda x: helper(x) + 1)
    g = jax.jit(lambda x: helper(x) * 2)
    assert notes(lambda: [f(jnp.ones(3)), g(jnp.ones(size))]) == []


def test_function_compiled_ahead_of_time_for_two_static_arguments_is_not_a_new_function():
    f = jax.jit(lambda x, n: double(x) + n, static_argnums=1)
    found = notes(lambda: [f.lower(1.0, n).compile()(1.0) for n in (1, 2)])
    assert not any(ANOTHER in note for note in found)


def test_function_with_two_static_arguments_is_not_called_a_new_function():
    f = jax.jit(lambda x, n: double(x) + n, static_argnums=1)
    (note,) = notes(lambda: [f(1.0, 1), f(1.0, 2)])
    assert note.startswith("jit__lambda was compiled 2 times, for arguments of the same shapes: ")
    assert "static arguments" in note and "function object" not in note


def test_number_in_a_loop_is_weakly_typed_the_first_time():
    f = jax.jit(lambda state, scale: double(state["x"]) * scale)

    def run():
        x = 1.0
        for _ in range(3):
            x = f({"x": x}, np.float32(0.5))
        return x

    (note,) = notes(run)
    assert note.startswith(
        "jit__lambda was compiled 2 times, because state['x'] was weakly typed (as Python numbers "
        "are) the first time but not the second: pass jnp.asarray(state['x'], jnp.float32) or "
    )


def test_second_block_has_no_note_about_compilations_of_the_first():
    f = jax.jit(lambda x: double(x))
    assert notes(lambda: f(jnp.ones(3))) == []
    assert notes(lambda: [f(jnp.ones(4)), f(jnp.ones(3))]) == []


def test_each_program_with_our_callbacks_is_one_compilation():
    def f(x):
        return double(x) + double(x + 1)

    def g(x):
        double(x)
        return x

    def other(x):
        return x + 1

    found = compilations(lambda: [jax.jit(h)(2.0) for h in (f, g, other, f)])
    assert [compilation.program.name for compilation in found] == ["jit_f", "jit_g"]
    assert all(compilation.lower_ns > 0 and compilation.compile_ns > 0 for compilation in found)
    assert [compilation.arguments for compilation in found] == [(Aval((), "float32"),)] * 2
    assert len({compilation.function for compilation in found}) == 2 and all(
        compilation.function for compilation in found
    )
    assert len({compilation.program for compilation in found}) == 2


def test_program_with_only_jaxs_own_callbacks_is_not_recorded_as_a_compilation():
    f = jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x))
    assert compilations(lambda: f(1.0)) == ()


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
    def work():
        jax.jit(lambda x: double(x))(1.0).block_until_ready()

    def run():
        in_threads(lambda _: work(), range(4))

    found = compilations(run)
    assert len(found) == len({compilation.program for compilation in found}) == 4


@pytest.mark.parametrize("cached", [True, False], ids=["cache on", "cache off"])
def test_note_says_that_the_persistent_cache_does_not_store_a_program(in_process, cached, tmp_path):
    """JAX up to 0.10 does not store programs with callbacks, as the files in the cache show."""
    program = Path(__file__).with_name("cached.py")
    found = in_process(program, tmp_path if cached else "").value
    old = jax.__version_info__ < (0, 11)
    assert (found["others"], found["kept"]) == (int(cached), int(cached and not old))
    expected = cached and old
    assert [
        f"cache of JAX {jax.__version__} does not store" in note for note in found["called"]
    ] == ([True] * expected)
    assert found["unused"] == []  # its compiled program has no callback left
    assert found["flags"] == {"jit_with_callback": expected, "jit_with_unused_callback": False}
