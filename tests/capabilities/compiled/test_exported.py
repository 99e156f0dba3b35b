"""Exported programs call the functions that are registered under the same names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _function

TARGET = "jaxcb_function_registered_with_compile_numba"
CHECKS = [export.DisabledSafetyCheck.custom_call(TARGET)]
X = np.arange(6, dtype=np.float32).reshape(3, 2)
LOADING = """
import sys
import jax, numpy as np
from jax import export
import jupyter_jaxcb as jaxcb

program = export.deserialize(open(sys.argv[1], "rb").read())
x = np.arange(6, dtype=np.float32).reshape(3, 2)

def outcome():
    try:
        return np.asarray(jax.jit(program.call)(x)).tolist()
    except Exception as error:
        return str(error)

print(outcome())

@jaxcb.pure(result="x", compile="numba")
def unrelated(x):
    return x

print(outcome())

@jaxcb.pure(result="x", compile="numba")
def weighted(x, weight, mode="sum"):
    return x * weight + 1

with jaxcb.record() as r:
    print(outcome())
print(len(r.recording), [call.element for call in r.recording])

@jaxcb.pure(result="x", compile="numba")
def weighted(x, weight, mode="sum"):
    if x[0] > 3:
        raise ValueError("too large", x[0])
    return x

print(outcome())
"""


def weighted(x, weight, mode="sum"):
    return x * weight + 1 if mode == "sum" else x


def exported(function, *arguments):
    return export.export(jax.jit(function), disabled_checks=CHECKS)(*arguments)


@pytest.fixture(scope="module")
def program():
    callback = jaxcb.pure(result="x", compile="numba")(weighted)
    return exported(lambda x: jax.vmap(lambda x: callback(x, (2.0, 3.0)[0], mode="sum"))(x), X)


def test_exported_program_computes_the_same_in_this_process(program):
    np.testing.assert_array_equal(jax.jit(program.call)(X), 2 * X + 1)


@pytest.mark.slow
def test_another_process_calls_the_function_that_it_registers_under_the_name(
    program, in_process, tmp_path
):
    (tmp_path / "program").write_bytes(program.serialize())
    loaded = in_process(LOADING, tmp_path / "program")
    nothing, other, computed, recorded, failed = loaded.stdout.splitlines()
    assert TARGET in nothing
    assert "calls weighted, and no function of that name is registered" in other
    assert "@jaxcb.pure(..., compile='numba') above def weighted" in other
    assert computed == str((2 * X + 1).tolist())
    assert recorded == "3 [0, 1, 2]"
    assert "ValueError: ('too large', 4.0)" in failed and "batch element 2" in failed


def test_functions_of_c_are_exported_by_their_name():
    erf = jaxcb.pure("scipy.special.cython_special.erf", compile="numba")
    np.testing.assert_array_equal(exported(erf, X).call(X), erf(X))


def test_buffer_callbacks_are_exported():
    @jaxcb.buffer(result="x", compile="numba")
    def negated(out, x):
        out[...] = -x

    np.testing.assert_array_equal(exported(negated, X).call(X), -X)


def test_programs_with_other_callbacks_are_not_exported():
    python = jaxcb.pure(result="x")(weighted)
    effect = jaxcb.io(result="x", compile="numba")(weighted)
    with pytest.raises(NotImplementedError, match="cannot export weighted"):
        exported(lambda x: python(x, 1.0), X)
    with pytest.raises(NotImplementedError, match="which has side effects"):
        exported(lambda x: effect(x, 1.0), X)


def test_one_program_may_call_a_function_with_several_interfaces():
    callback = jaxcb.pure(result="x", compile="numba")(weighted)

    def program(x):
        whole, one = callback(x, 2.0), callback(x[0, 0], jnp.float32(3))
        return whole, one, jax.vmap(lambda x: callback(x, 4.0, mode="none"))(x)

    whole, one, rows = exported(program, X).call(X)
    np.testing.assert_array_equal(whole, 2 * X + 1)
    assert one == 1
    np.testing.assert_array_equal(rows, X)


def test_functions_of_one_name_are_not_exported_because_programs_could_call_either():
    def step(by):
        def step(x):
            return x + by

        return jaxcb.pure(step, result="x", compile="numba")

    first, second = step(1.0), step(2.0)
    np.testing.assert_array_equal(exported(second, X).call(X), X + 2)
    for callback in (first, jaxcb.pure(lambda x: x, result="x", compile="numba")):
        with pytest.raises(NotImplementedError, match="Give each function a name of its own"):
            exported(callback, X)


def test_function_that_is_registered_while_an_older_one_compiles_is_called(monkeypatch):
    def newest(x):
        return x + 3

    def older(x):
        return x + 2

    older.__name__ = newest.__name__ = "newest"
    program = exported(jaxcb.pure(lambda_named(newest, 1), result="x", compile="numba"), X)
    jax.jit(program.call)(X)
    compiling, kept = _function.compile_kernel, []

    def compile_kernel(*args):
        if not kept:
            kept.append(jaxcb.pure(newest, result="x", compile="numba"))
        return compiling(*args)

    kept_older = jaxcb.pure(older, result="x", compile="numba")
    monkeypatch.setattr(_function, "compile_kernel", compile_kernel)
    for _ in range(2):
        np.testing.assert_array_equal(program.call(X), X + 3)
    assert kept_older.host.name == "newest"


def lambda_named(function, by):
    """Return another function of the same name."""

    def other(x):
        return x + by

    other.__name__ = function.__name__
    return other


def test_failure_counts_the_calls_of_the_function_that_is_registered_now(failure):
    def counted(x):
        return x + 1

    callback = jaxcb.pure(counted, result="x", compile="numba")
    program = exported(callback, X)
    for _ in range(7):
        program.call(X).block_until_ready()

    def counted(x):
        if x[0, 0] == 0:
            raise ValueError("no")
        return x

    callback = jaxcb.pure(counted, result="x", compile="numba")
    error, notes = failure(program.call, X)
    assert error.args == ("no",)
    assert "in call 1 since registration" in notes
    assert callback.host.name == "counted"
