"""Every host call is counted at the line that made it, or under no line if that is unknown."""

import contextlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import (
    FLAVORS,
    STRUCT,
    double,
    double_into,
    line_of,
    observed,
    one,
)
from tests.interface import summarize

flavors = pytest.mark.parametrize("flavor", FLAVORS)
recorded = pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])


def by_line(recording):
    """Return the number of calls by line; calls whose line is unknown are under None."""
    found = {}
    for s in summarize(recording):
        line = None if "compiled before" in s.site.source else s.site.line
        found[line] = found.get(line, 0) + s.calls
    return {line: calls for line, calls in found.items() if calls}


@recorded
def test_program_compiled_before_is_not_counted_at_another_line_with_the_same_function(flavor):
    before = jax.jit(lambda x: FLAVORS[flavor](x))
    jax.block_until_ready(before(one()))

    def run():
        jax.block_until_ready(FLAVORS[flavor](one()))
        for _ in range(3):
            jax.block_until_ready(before(one()))
        jax.effects_barrier()

    _, recording = observed(run)
    calls = by_line(recording)
    assert calls.pop(None) == 3
    assert list(calls.values()) == [1]


def test_eager_buffer_calls_are_counted_at_their_lines():
    def run():
        double_it = buffer_callback(double_into, STRUCT)
        a = double_it(one())
        b = double_it(one())
        return a + b + double_it(one() + 1)

    result, recording = observed(run)
    assert float(result) == 8
    a = line_of(run, "a = double_it")
    assert by_line(recording) == {a: 1, a + 1: 1, a + 2: 1}


def test_eager_buffer_call_compiled_in_an_earlier_block_has_its_line():
    def first():
        return buffer_callback(double_into, STRUCT)(one())

    def second():
        return buffer_callback(double_into, STRUCT)(one())

    assert by_line(observed(first)[1]) == {line_of(first, "return"): 1}
    assert by_line(observed(second)[1]) == {line_of(second, "return"): 1}
    assert float(second()) == 2  # still works after the blocks


def test_buffer_call_during_tracing_is_not_reported_as_elided():
    def f(x):
        with jax.ensure_compile_time_eval():
            return x + buffer_callback(double_into, STRUCT)(one())

    def run():
        FLAVORS["jax buffer"](one())  # compiles the program, for another line
        return jax.jit(f)(one())

    result, recording = observed(run)
    assert float(result) == 3
    assert (by_line(recording)[line_of(f, "return")], recording.elisions) == (1, ())


class EqualByType:
    """Equal to every other instance of this class, and to nothing else."""

    def __eq__(self, other):
        return type(other) is EqualByType

    def __hash__(self):
        return 1

    def __call__(self, ctx, out, x):
        double_into(ctx, out, x)


def test_equal_host_function_is_not_compiled_again_when_observed(compiles):
    buffer_callback(EqualByType(), STRUCT)(one())
    with compiles() as counted:
        observed(lambda: buffer_callback(EqualByType(), STRUCT)(one()))
    assert counted.count == 0


@pytest.fixture
def on_this_thread():
    """Disable asynchronous dispatch, so that host functions may use JAX."""
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    yield
    jax.config.update("jax_cpu_enable_async_dispatch", asynchronous)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_recursive_call_of_a_host_function_is_counted_at_the_inner_line(on_this_thread, around):
    def host(x):
        x = np.asarray(x)
        if x.ndim:
            return x
        inner = around(lambda x: jax.pure_callback(host, jax.typeof(x), x))  # inner line
        return np.asarray(inner(jnp.asarray(x)[None]))[0]

    def run():
        return jax.pure_callback(host, STRUCT, jnp.float32(3))

    result, recording = observed(run)
    assert float(result) == 3
    assert by_line(recording) == {line_of(host, "inner line"): 1, line_of(run, "return"): 1}


def test_recursive_buffer_callback_is_counted_at_both_lines(on_this_thread):
    depth = []

    def host(ctx, out, x):
        depth.append(1)
        np.asarray(out)[...] = 1
        if len(depth) == 1:
            inner = jax.ShapeDtypeStruct((1,), np.float32)
            jax.block_until_ready(buffer_callback(host, inner)(jnp.ones(1)))

    def run():
        return jax.block_until_ready(buffer_callback(host, STRUCT)(one()))

    _, recording = observed(run)
    assert by_line(recording) == {line_of(host, "block_until_ready"): 1, line_of(run, "return"): 1}


def test_print_in_a_host_function_is_counted_apart_from_the_call_around_it(on_this_thread, capsys):
    def host(x):
        jax.debug.print("x is {}", x)
        return x

    def run():
        return jax.pure_callback(host, STRUCT, one())

    _, recording = observed(run)
    assert by_line(recording) == {line_of(host, "print"): 1, line_of(run, "return"): 1}


def sharded(f):
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"))


def test_debug_calls_and_prints_in_a_shard_map_without_jit_are_recorded(capsys):
    got = []

    def f(x):
        jax.debug.callback(lambda x: got.append(x.shape), x)
        jax.debug.print("{}", x)
        return x

    _, recording = observed(lambda: sharded(f)(jnp.ones(2)))
    first = line_of(f, "callback")
    assert by_line(recording) == {first: 1, first + 1: 1}
    assert got == [(2,)]
    assert [fact.operands for fact in recording.lowered] == [(((2,), "float32"),)] * 2
    assert capsys.readouterr().out == "[1. 1.]\n"


# A step runs one of two lines: eagerly, in a program traced in the block, or compiled before it.
STEPS = st.lists(
    st.tuples(st.sampled_from(["eager", "jit", "before"]), st.sampled_from([0, 1])), max_size=8
)


@pytest.mark.long
@flavors
@settings(max_examples=12)
@given(steps=STEPS)
def test_calls_of_random_steps_are_counted_at_the_lines_that_made_them(flavor, steps):
    jax.clear_caches()
    bind = {
        "jax pure": (
            lambda x: jax.pure_callback(double, STRUCT, x),
            lambda x: jax.pure_callback(double, STRUCT, x),
        ),
        "jax io": (
            lambda x: io_callback(double, STRUCT, x),
            lambda x: io_callback(double, STRUCT, x),
        ),
        "jax debug": (
            lambda x: jax.debug.callback(double, x),
            lambda x: jax.debug.callback(double, x),
        ),
        "jax buffer": (
            lambda x: buffer_callback(double_into, STRUCT)(x),
            lambda x: buffer_callback(double_into, STRUCT)(x),
        ),
    }[flavor]
    before = [jax.jit(f) for f in bind]
    inside = [jax.jit(lambda x, f=f: f(x)) for f in bind]
    x = one()
    for f in before:
        jax.block_until_ready(f(x))
    jax.effects_barrier()
    expected = {}

    def run():
        for kind, which in steps:
            call = {"eager": bind, "jit": inside, "before": before}[kind][which]
            jax.block_until_ready(call(x))
            jax.effects_barrier()
            line = None if kind == "before" else bind[which].__code__.co_firstlineno
            if (kind, flavor) != ("before", "jax buffer"):  # those calls cannot be observed
                expected[line] = expected.get(line, 0) + 1

    _, recording = observed(run)
    assert by_line(recording) == expected


def test_locations_in_a_lowered_program_are_user_code():
    def prog(x):
        y = jax.pure_callback(double, STRUCT, x)
        jax.debug.print("x {}", x)
        jax.debug.callback(double, x, ordered=True)
        return io_callback(double, STRUCT, y) + buffer_callback(double_into, STRUCT)(x)

    def files(around):
        with around():
            text = jax.jit(lambda x: prog(x)).lower(one()).as_text(debug_info=True)
        return set(re.findall(r'loc\("([^"]*\.py)"', text))

    plain = files(contextlib.nullcontext)
    assert __file__ in plain
    assert files(jaxcb.observe_jax) == plain
