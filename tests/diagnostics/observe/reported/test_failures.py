"""The exception of an observed host function is the cause of JAX's error, which stays the same."""

import contextlib
import functools
import threading
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.diagnostics.observe._jax_callbacks import STRUCT


class Unlucky(ValueError):
    pass


def boom(x):
    if x >= 2:
        raise Unlucky("no luck")
    return x


def boom_into(ctx, out, x):
    raise Unlucky("no luck")


def pure(x):
    return jax.pure_callback(boom, STRUCT, x, vmap_method="sequential")


def look(x):
    jax.debug.callback(boom, x)
    return x


# A program, the names of the innermost frames, and which call failed.
THREE = np.arange(3, dtype=np.float32)
PROGRAMS = {
    "eager": (lambda: pure(2.0), ["boom"], "call 1"),
    "jit": (lambda: jax.jit(pure)(2.0), ["pure", "boom"], "call 1"),
    "vmap": (lambda: jax.vmap(pure)(THREE), ["<lambda>", "pure", "boom"], "call 3"),
    "vmap in jit": (lambda: jax.jit(jax.vmap(pure))(THREE), ["pure", "boom"], "call 3"),
    "scan": (
        lambda: jax.jit(lambda x: jax.lax.scan(lambda c, y: (c, pure(y)), 0, x))(THREE),
        ["<lambda>", "<lambda>", "pure", "boom"],
        "call 3",
    ),
    "io": (
        lambda: jax.jit(lambda x: io_callback(boom, STRUCT, x))(2.0),
        ["<lambda>", "boom"],
        "call 1",
    ),
    "debug": (lambda: jax.jit(look)(2.0), ["look", "boom"], "call 1"),
    "buffer": (
        lambda: jax.jit(lambda x: buffer_callback(boom_into, STRUCT)(x))(jnp.float32(2)),
        ["<lambda>", "boom_into"],
        "call 1",
    ),
}


def raised(run, kind=Exception):
    with pytest.raises(kind) as caught:
        jax.block_until_ready(run())
        jax.effects_barrier()
    return caught.value


@pytest.mark.parametrize("name", PROGRAMS)
def test_cause_has_the_frames_of_the_user_and_says_which_call_failed(name):
    run, frames, call = PROGRAMS[name]
    with jaxcb.observe_jax():
        error = raised(run, jax.errors.JaxRuntimeError)
    cause = error.__cause__
    assert type(cause) is Unlucky and jaxcb.host_error(error) is cause
    shown = traceback.extract_tb(cause.__traceback__)[-len(frames) :]
    assert [frame.name for frame in shown] == frames
    assert {frame.filename for frame in shown} == {__file__}
    (note,) = cause.__notes__
    assert "bound at test_failures.py:" in note and note.endswith("called with float32[]")
    assert f"in recorded {call} of this site, " in note
    assert ("in batch element 2, " in note) == ("vmap" in name)


REFUSED = {
    "number of results": (lambda x: (x, x), STRUCT),
    "shape": (lambda x: np.ones(3, np.float32), STRUCT),
    "shape of a Python number": (lambda x: 1.0, jax.ShapeDtypeStruct((2,), np.float32)),
    "dtype": (lambda x: np.int32(1), STRUCT),
    "dtype of a Python number": (lambda x: 1, STRUCT),
    "second result": (lambda x: (x, np.ones(3, np.int8)), (STRUCT, STRUCT)),
}


@pytest.mark.parametrize(
    ("name", "api", "how"),
    [
        *((name, jax.pure_callback, "jit") for name in REFUSED),
        *(("shape", io_callback, how) for how in ("jit", "eager", "vmap")),
        *(("dtype", jax.pure_callback, how) for how in ("eager", "vmap")),
    ],
)
def test_result_that_jax_refuses_is_a_failed_call_with_the_last_line_of_jax(name, api, how):
    host, struct = REFUSED[name]

    def refused(x):
        return host(x)

    def called(x):
        return api(
            refused, struct, x, **{"vmap_method": "sequential"} if api is jax.pure_callback else {}
        )

    def run():
        jax.clear_caches()
        if how == "vmap":
            return jax.jit(jax.vmap(called))(jnp.arange(2.0))
        return (jax.jit(called) if how == "jit" else called)(2.0)

    plain = raised(run)
    with jaxcb.observe_jax() as recorded:
        error = raised(run)
    last = str(plain).strip().splitlines()[-1]
    assert type(error) is type(plain) and str(error).strip().splitlines()[-1] == last
    (call,) = recorded.recording
    assert call.error == last and f"{type(error.__cause__).__name__}: {error.__cause__}" == last
    assert "raised by the jax " in error.__cause__.__notes__[0]
    assert " callback refused, bound at test_failures.py:" in error.__cause__.__notes__[0]


@pytest.mark.parametrize("value", [1.0, np.float64(1), np.float32(1), [2.0], jnp.float32(3)])
def test_result_that_jax_accepts_is_accepted_while_observed(value):
    shape = jax.tree.map(lambda _: STRUCT, value)
    program = jax.jit(lambda x: jax.pure_callback(lambda x: value, shape, x))
    with jaxcb.observe_jax() as recorded:
        assert jax.tree.leaves(program(2.0)) == jax.tree.leaves(value)
    assert [call.error for call in recorded.recording] == [None]


def test_exception_of_a_later_call_on_the_fast_path_of_jax_is_found():
    program = jax.jit(pure)
    with jaxcb.observe_jax():
        for x in (0.0, 1.0):
            program(x)
        found = jaxcb.host_error(raised(lambda: program(2.0)))
    assert type(found) is Unlucky and "in recorded call 3 of this site, " in found.__notes__[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_class_and_message_of_the_error_are_those_of_jax(name):
    run, _, _ = PROGRAMS[name]

    def of_jax():
        jax.clear_caches()
        error = raised(run)
        kept = [line for line in str(error).split("\n") if "jupyter_jaxcb/" not in line]
        return type(error), error.args == (str(error),), kept, error.__context__

    plain, observed = None, None
    for observe in (False, True):
        with jaxcb.observe_jax() if observe else contextlib.nullcontext():
            plain, observed = observed, of_jax()
    assert observed == plain


def test_exception_of_an_eager_debug_callback_arrives_itself_with_the_note():
    with jaxcb.observe_jax():
        error = raised(lambda: jax.debug.callback(boom, 2.0))
    assert type(error) is Unlucky and (error.args, error.__cause__) == (("no luck",), None)
    assert jaxcb.host_error(error) is error
    assert "raised by the jax debug callback boom, bound at test_failures.py:" in error.__notes__[0]


def test_the_same_failure_after_the_observation_has_no_cause():
    program = jax.jit(pure)
    with jaxcb.observe_jax():
        assert raised(lambda: program(2.0)).__cause__ is not None
    error = raised(lambda: program(2.0))
    assert error.__cause__ is None and jaxcb.host_error(error) is None


def test_each_thread_gets_its_own_exception():
    both, causes = threading.Barrier(2, timeout=60), {}

    def fail(x):
        both.wait()
        error = Unlucky("no luck")
        error.x = float(x)
        raise error

    def run(x):
        program = jax.jit(lambda x: jax.pure_callback(fail, STRUCT, x))
        causes[x] = raised(functools.partial(program, np.float32(x))).__cause__

    with jaxcb.observe_jax():
        in_threads(run, (1.0, 2.0))
    assert {x: cause.x for x, cause in causes.items()} == {1.0: 1.0, 2.0: 2.0}


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
def test_exception_that_a_host_function_lets_through_is_the_cause_of_its_own():
    inner = jax.jit(pure)

    def outer(x):
        return np.asarray(inner(2.0))

    with jaxcb.observe_jax():
        error = raised(lambda: jax.jit(lambda x: jax.pure_callback(outer, STRUCT, x))(0.0))
    assert type(error.__cause__) is type(error)
    assert type(error.__cause__.__cause__) is Unlucky
