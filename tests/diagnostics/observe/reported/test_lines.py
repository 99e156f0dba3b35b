"""Each host call is counted on its line, or marked as having no known line."""

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
from jupyter_jaxcb.report import summarize
from tests.diagnostics.observe._own import (
    FLAVORS,
    STRUCT,
    double,
    double_into,
    line_of,
    observed,
    one,
)

flavors = pytest.mark.parametrize("flavor", FLAVORS)
recorded = pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])


def by_line(recording):
    """How many calls each line has; under None those of no known line."""
    found = {}
    for s in summarize(recording):
        line = None if "compiled before" in s.site.source else s.site.line
        found[line] = found.get(line, 0) + s.calls
    return {line: calls for line, calls in found.items() if calls}


@recorded
def test_program_compiled_before_is_not_counted_on_a_line_that_calls_the_same_function(flavor):
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


def test_eager_buffer_calls_are_counted_on_their_lines():
    def run():
        double_it = buffer_callback(double_into, STRUCT)
        a = double_it(one())
        b = double_it(one())
        return a + b + double_it(one() + 1)  # third

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
    assert float(second()) == 2  # and works on, unrecorded


def test_buffer_call_while_a_function_is_traced_is_not_taken_for_one_that_it_lost():
    def f(x):
        with jax.ensure_compile_time_eval():
            return x + buffer_callback(double_into, STRUCT)(one())

    def run():
        FLAVORS["jax buffer"](one())  # the program is there, and that of another line
        return jax.jit(f)(one())

    result, recording = observed(run)
    assert float(result) == 3
    assert (by_line(recording)[line_of(f, "return")], recording.elisions) == (1, ())


class OfItsKind:
    """Equal to every other of its kind, and to nothing else."""

    def __eq__(self, other):
        return type(other) is OfItsKind

    def __hash__(self):
        return 1

    def __call__(self, ctx, out, x):
        double_into(ctx, out, x)


def test_equality_that_knows_only_its_own_kind_costs_no_compilation(compiles):
    buffer_callback(OfItsKind(), STRUCT)(one())
    with compiles() as counted:
        observed(lambda: buffer_callback(OfItsKind(), STRUCT)(one()))
    assert counted.count == 0


@pytest.fixture
def on_this_thread():
    """Small computations are done where they are asked for: host functions may use JAX."""
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    yield
    jax.config.update("jax_cpu_enable_async_dispatch", asynchronous)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_call_that_a_host_function_makes_of_itself_is_on_the_inner_line(on_this_thread, around):
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


def test_buffer_function_that_calls_itself_has_two_lines(on_this_thread):
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


def test_print_of_a_host_function_is_not_taken_for_the_call_around_it(on_this_thread, capsys):
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


# What a step may be: an eager call, a program traced inside, one compiled before, of each line.
STEPS = st.lists(
    st.tuples(st.sampled_from(["eager", "jit", "before"]), st.sampled_from([0, 1])), max_size=8
)


@flavors
@settings(max_examples=12)
@given(steps=STEPS)
def test_calls_of_random_steps_are_on_the_lines_they_were_made_on(flavor, steps):
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
    wanted = {}

    def run():
        for way, which in steps:
            call = {"eager": bind, "jit": inside, "before": before}[way][which]
            jax.block_until_ready(call(x))
            jax.effects_barrier()
            line = None if way == "before" else bind[which].__code__.co_firstlineno
            if (way, flavor) != ("before", "jax buffer"):  # of which nothing is seen
                wanted[line] = wanted.get(line, 0) + 1

    _, recording = observed(run)
    assert by_line(recording) == wanted


def test_location_in_a_program_is_the_users():
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
