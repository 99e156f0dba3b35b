"""A compiled program calls the function that its callback has now, through one custom call."""

import gc
import re
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _failure
from jupyter_jaxcb.capabilities.compiled._handler import TARGET

SCALAR = jax.ShapeDtypeStruct((), np.float32)
HOST = "@jaxcb.pure(result='x', compile='numba')\ndef host(x): return x + {}"


def compiled(function, result=SCALAR, flavor=jaxcb.pure, **options):
    return flavor(function, result=result, compile="numba", **options)


def adding(number):
    return lambda x: x + number


def test_rebound_function_reaches_a_compiled_program(compiles):
    callback = compiled(adding(1))
    program = jax.jit(callback)
    assert float(program(1.0)) == 2
    for version, number in ((2, 10), (3, 100)):
        callback.host.rebind(adding(number))
        with compiles() as counted, jaxcb.record() as r:
            assert float(program(1.0)) == float(program(1.0)) == 1 + number
        assert counted.count == 0
        assert [call.version for call in r.recording] == [version] * 2


def test_rerun_cell_replaces_the_machine_code_of_its_programs(notebook):
    notebook.run(HOST.format(1), "a")
    program = jax.jit(jax.vmap(notebook.names["host"]))
    x = np.float32([1, 2])
    np.testing.assert_array_equal(program(x), x + 1)
    for number in (10, 100):
        notebook.run(HOST.format(number), "a")
        np.testing.assert_array_equal(program(x), x + number)
        assert float(notebook.names["host"](1.0)) == 1 + number


def test_registering_in_a_cell_that_runs_again_compiles_anew(notebook):
    """numba reads globals while it compiles, and the function may be from another cell."""
    notebook.run("scale = 2\ndef scaled(x): return scale * x", "a")
    register = "callback = jaxcb.pure(scaled, result='x', compile='numba')"
    notebook.run(register, "b")
    program = jax.jit(notebook.names["callback"])
    for scale in (3, 4):
        before = float(program(10.0))
        notebook.names["scale"] = scale
        assert float(program(10.0)) == float(notebook.names["callback"](10.0)) == before
        notebook.run(register, "b")
        callback = notebook.names["callback"]
        assert float(callback(10.0)) == float(jax.jit(callback)(10.0)) == 10 * scale
        assert float(program(10.0)) == 10 * scale


def test_all_programs_of_a_function_call_the_new_one():
    callback = compiled(adding(1), "x")
    xs = [np.ones((2,) * rank, np.float32) for rank in range(3)]
    programs = [jax.jit(callback) for _ in xs]
    for program, x in zip(programs, xs, strict=True):
        program(x)
    callback.host.rebind(adding(10))
    for program, x in zip(programs, xs, strict=True):
        np.testing.assert_array_equal(program(x), x + 10)


def test_rebound_function_is_called_in_the_rest_of_a_loop(note):
    """The next call finds the new function, even if the program is running."""
    append, got = note
    callback = compiled(lambda x: x + 1, flavor=jaxcb.io)

    def switch(i):
        if i == 2:
            callback.host.rebind(lambda x: x + 100)

    def step(i, x):
        jaxcb.io_callback(switch, None, i, ordered=True)
        return sent(callback(x))

    sent = compiled(lambda x: append(x), flavor=jaxcb.io)
    jax.jit(lambda x: jax.lax.fori_loop(0, 4, step, x))(0.0).block_until_ready()
    assert got[:2] == [1, 2]
    assert got[-1] - got[-2] == 100


def test_new_function_that_does_not_compile_fails_until_the_next_one(failure):
    def broken(x):
        return no_such_name(x)  # noqa: F821

    callback = compiled(adding(1))
    program = jax.jit(callback)
    program(1.0)
    for number in (10, 100):
        callback.host.rebind(broken)
        for _ in range(2):
            error, notes = failure(program, 1.0)
            assert type(error) is TypeError
            assert "numba cannot compile broken for (float32): " in str(error)
            assert "no_such_name" in str(error)
            assert "raised by the pure callback" in notes
        callback.host.rebind(adding(number))
        assert float(program(1.0)) == 1 + number


def test_new_function_whose_result_does_not_match_fails_its_programs(failure):
    callback = compiled(adding(1))
    program = jax.jit(callback)
    program(1.0)
    callback.host.rebind(lambda x: 1j * x)
    error, _ = failure(program, 1.0)
    assert "returns complex numbers" in str(error)
    callback.host.rebind(adding(2))
    assert float(program(1.0)) == 3


def test_calls_before_and_after_a_rebind_are_recorded_with_their_versions():
    callback = compiled(adding(1))
    program = jax.jit(callback)
    with jaxcb.record() as r:
        program(1.0).block_until_ready()
        callback.host.rebind(adding(10))
        program(1.0).block_until_ready()
    assert sorted(call.version for call in r.recording) == [1, 2]


def test_a_thousand_functions_and_many_programs_share_one_custom_call_target(monkeypatch):
    """XLA never forgets a target, and compiles a custom call of another name again."""
    registered = []
    monkeypatch.setattr(jax.ffi, "register_ffi_target", lambda *args, **_: registered.append(args))
    callback = compiled(adding(1))
    program = jax.jit(callback)
    bodies = [adding(1), adding(2)]
    for n in range(1000):
        callback.host.rebind(bodies[n % 2])
        assert float(program(1.0)) == 2 + n % 2
    texts = [jax.jit(compiled(adding(n))).lower(1.0).as_text() for n in range(3)]
    names = {name for text in texts for name in re.findall(r"custom_call @(\w+)", text)}
    assert names == {TARGET}
    assert registered == []


def test_function_object_that_is_rebound_twice_is_compiled_once(monkeypatch):
    callback = compiled(adding(1))
    program = jax.jit(callback)
    first, second = callback.host.current, adding(2)
    program(1.0)
    callback.host.rebind(second)
    program(1.0)
    monkeypatch.setattr("jupyter_jaxcb.capabilities.compiled._function.compile_kernel", None)
    for function, expected in ((first, 2), (second, 3)):
        callback.host.rebind(function)
        assert float(program(1.0)) == expected


def test_blocks_live_as_long_as_their_program():
    callback = compiled(adding(1))
    before = set(_failure.sites)
    program = jax.jit(lambda x: callback(x))
    program(1.0)
    (address,) = set(_failure.sites) - before
    block = weakref.ref(_failure.sites[address])
    gc.collect()
    assert block() is not None
    assert float(program(1.0)) == 2
    del program
    jax.clear_caches()
    gc.collect()
    assert block() is None
    callback.host.rebind(adding(2))


@pytest.mark.long
@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io, jaxcb.buffer])
def test_functions_die_with_their_callbacks_and_programs(flavor):
    """Nothing that numba keeps refers to them."""
    alive = []

    def register(number):
        added = np.float32([number])

        def returning(x):
            return x + added

        def writing(out, x):
            out[:] = x + added

        callback = compiled(writing if flavor is jaxcb.buffer else returning, "x", flavor)
        alive.append(weakref.ref(callback.host.current))
        x = np.ones((2, 1), np.float32)
        for call in (jax.vmap(callback), jax.jit(jax.vmap(callback))):
            np.testing.assert_array_equal(call(x), x + number)

    for number in range(3):
        register(number)
    jax.clear_caches()
    for _ in range(2):  # programs first
        gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_block_is_not_called_from_python():
    callback = compiled(adding(1))
    before = set(_failure.sites)
    program = jax.jit(lambda x: callback(x))
    program(1.0)
    (address,) = set(_failure.sites) - before
    with pytest.raises(TypeError, match="XLA calls the machine code"):
        _failure.sites[address](np.float32(1))


def test_each_call_site_of_a_program_has_its_own_function():
    plus, times = compiled(adding(1)), compiled(lambda x: 3 * x)
    program = jax.jit(lambda x: plus(times(x)) - times(plus(x)))
    assert float(program(5.0)) == 16 - 18


def test_program_that_runs_while_recording_calls_as_often_as_without(note):
    append, got = note
    callback = compiled(lambda x: append(x), flavor=jaxcb.io)
    program = jax.jit(jax.vmap(callback))
    program(jnp.arange(3.0)).block_until_ready()
    with jaxcb.record() as r:
        program(jnp.arange(3.0)).block_until_ready()
    assert got == [0, 1, 2] * 2
    assert len(r.recording) == 3
