"""If a program makes every call in its text, nothing is elided; otherwise the rest is reported."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts, check, each, table

ROWS, row = table()
X = np.float32(1.5)


def flavor(h, kind, name="a"):
    if kind == "pure":
        return h.pure(name)
    if kind == "io":
        return h.io(name)
    if kind == "ordered":
        return h.io(name, ordered=True)
    debug = h.debug(name)
    return lambda x: (debug(x), x)[1]


# XLA of jaxlib 0.10.0 keeps a conditional with a constant index and effects.
FOLDS = jax.__version_info__ >= (0, 10, 2)

for kind in ("pure", "io", "debug", "ordered"):

    @row(
        f"{kind}: a helper in the branch that is taken and outside of it",
        {"a": "kept 2"},
        known="a" if FOLDS else "",
    )
    def _(h, kind=kind):
        a = flavor(h, kind)
        helper = jax.jit(lambda x: a(x) + 1)

        def f(x):
            return lax.cond(True, helper, lambda x: helper(x * 3), x) + helper(x + 1)

        return f, (X,)

    @row(f"{kind}: one function as both branches", {"a": "kept 1"}, known="a" if FOLDS else "")
    def _(h, kind=kind):
        a = flavor(h, kind)

        def f(x):
            return lax.cond(True, a, a, x)

        return f, (X,)

    @row(f"{kind}: a while that no run enters", {"a": "kept 1"}, known="a")
    def _(h, kind=kind):
        a = flavor(h, kind)
        helper = jax.jit(lambda x: a(x) + 1)

        def f(x):
            y = lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, helper(s[1])), (0, x))[1]
            return y + helper(x + 1)

        return f, (X,)

    @row(f"{kind}: a checkpoint in a scan that no run enters and in a loop", {"a": "kept 2"})
    def _(h, kind=kind):
        helper = jax.checkpoint(flavor(h, kind))

        def f(x):
            step = lambda c, i: (c, helper(c))  # noqa: E731
            never = lambda x: lax.scan(step, x, jnp.arange(3))[0]  # noqa: E731
            y = lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, never(s[1])), (0, x))[1]
            n = 2 + (x > 9)
            return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, helper(s[1])), (0, y))[1]

        return f, (X,)

    @row(f"{kind}: a branch that no run takes", {"a": "optimized away|not reached 0"})
    def _(h, kind=kind):
        a = flavor(h, kind)
        return lambda x: lax.switch(5, (a, jnp.cos, jnp.sin), x), (X,)

    @row(f"{kind}: a branch in a scan of length 3 unrolled by 2", {"a": "kept 3"})
    def _(h, kind=kind):
        a = flavor(h, kind)

        def step(c, e):
            return lax.cond(c > -1e9, a, lambda e: e, e), None

        return lambda x: lax.scan(step, x, jnp.arange(3.0), unroll=2)[0], (X,)

    @row(f"{kind}: nested scans, both unrolled", {"a": "kept 15"}, known="a")
    def _(h, kind=kind):
        a = flavor(h, kind)

        def outer(c, _):
            return lax.scan(lambda c, _: (a(c) + 1, None), c, length=5, unroll=2)[0], None

        return lambda x: lax.scan(outer, x, length=3, unroll=2)[0], (X,)


@row("a while whose condition is not constant", {"a": "kept 1"})
def _(h):
    a = h.io("a")
    helper = jax.jit(lambda x: a(x) + 1)

    def f(x):
        first = lax.while_loop(lambda s: s[0] * 2 < 0, lambda s: (s[0] + 1, helper(s[1])), (0, x))
        return first[1] + helper(x + 1)

    return f, (X,)


@row("all but the last result of an unrolled scan are unused", {"a": "deduplicated 1"}, known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda _, e: (a(e), None), x, jnp.arange(3.0), unroll=2)[0], (X,)


@row(
    "an unused result of a helper in nested unrolled scans", {"a": "deduplicated 4", "b": "kept 8"}
)
def _(h):
    a, b = h.pure("a"), h.debug("b")
    helper = jax.jit(lambda x: (b(x), a(x))[1])

    def inner(c, e):
        helper(e)
        return helper(c), None

    def outer(c, _):
        return lax.scan(inner, c, jnp.arange(2.0), unroll=2)[0], None

    return lambda x: lax.scan(outer, x, length=2, unroll=2)[0], (X,)


@row("an unused result of a checkpointed helper", {"a": "deduplicated 1"}, known="a")
def _(h):
    a = h.pure("a", vmap_method="sequential_unrolled")
    helper = jax.checkpoint(a)

    def f(x):
        y, _ = lax.scan(lambda c, _: (helper(x), None), x, length=1)
        helper(x)
        return y

    return f, (X,)


def predicate(call, use, length):
    def p(state):
        y = call(state[1])
        return (state[0] < length) & (y > -1e9) if use else state[0] < length

    return lambda x: lax.while_loop(p, lambda s: (s[0] + 1, s[1] + 1), (0, x))[1]


for kind, line in {
    "io": "optimized away 0",
    "debug": "optimized away 0",
    "ordered": "kept 4",
}.items():

    @row(f"{kind} in the condition of a loop whose trip count XLA knows", {"a": line})
    def _(h, kind=kind):
        return predicate(flavor(h, kind), False, 3), (X,)


for kind in ("pure", "io", "debug"):

    @row(f"{kind} that the condition of a loop depends on", {"a": "kept 4"})
    def _(h, kind=kind):
        a, needed = flavor(h, kind), h.pure("b")
        return predicate(a if kind != "debug" else lambda x: needed(a(x)), True, 3), (X,)

    if kind == "debug":
        ROWS[-1].lines["b"] = "kept 4"


@row("an io helper in the condition and in the body", {"a": "deduplicated 3"}, known="a")
def _(h):
    a = h.io("a")
    helper = jax.jit(lambda x: a(x) + 1)

    def p(s):
        helper(s[1])
        return s[0] < 3

    return lambda x: lax.while_loop(p, lambda s: (s[0] + 1, helper(s[1])), (0, x))[1], (X,)


for flavor_of in ("pure", "side effect"):

    @row(
        f"{flavor_of}: a jitted helper in a condition with ordered io",
        {"a": "kept 4", "b": "kept 4"},
    )
    def _(h, pure=flavor_of == "pure"):
        a, b = h.pure("a") if pure else buffer_of(h, has_side_effect=True), h.io("b", ordered=True)
        helper = jax.jit(lambda x: (a(x), b(x))[0])
        return predicate(helper, True, 3), (X,)


@row("a helper in a condition with ordered io and outside of it", {"a": "kept 5", "b": "kept 5"})
def _(h):
    a, b = h.pure("a"), h.io("b", ordered=True)
    helper = jax.jit(lambda x: (a(x), b(x))[0])
    loop = predicate(helper, True, 3)
    return lambda x: loop(x) + helper(x + 9), (X,)


def buffer_of(h, **options):
    def a(ctx, out, x):
        h._count("a")
        np.asarray(out)[...] = np.asarray(x)

    return jaxcb.buffer_callback(a, jax.ShapeDtypeStruct((), np.float32), **options)


def with_tap(h, operand, length, buffer):
    tap = jaxcb.tap(h.host("t", lambda x, transforms=(): None))
    call = buffer_of(h) if buffer else h.pure("a")

    def f(x):
        def p(state):
            tap(state[1])
            return (state[0] < length) & (call(operand(x, state[1])) > -1e9)

        return lax.while_loop(p, lambda s: (s[0] + 1, s[1] + 1), (0, x))[1]

    return f, (X,)


for buffer in (False, True):
    name = "buffer" if buffer else "pure"

    @row(f"{name} beside a tap in a condition, hoisted", {"a": "hoisted 2", "t": "kept 3"})
    def _(h, buffer=buffer):
        return with_tap(h, lambda x, _: x, 2, buffer)

    @row(f"{name} beside a tap in a condition, not hoisted", {"a": "kept 3", "t": "kept 3"})
    def _(h, buffer=buffer):
        return with_tap(h, lambda _, c: c, 2, buffer)


for kind in ("io", "debug"):
    for length in (0, 3):
        line = f"kept {length}" if length else "unused 0"

        @row(f"{kind} in a loop of length {length} under grad", {"a": line}, known="a")
        def _(h, kind=kind, length=length):
            a = flavor(h, kind)

            def loop(x):
                def body(_, c):
                    a(lax.stop_gradient(x))
                    return c * 2

                return lax.fori_loop(0, length, body, x)

            return jax.grad(loop), (X,)

        @row(f"{kind} in a scan of length {length} under grad", {"a": line}, known="a")
        def _(h, kind=kind, length=length):
            a = flavor(h, kind)

            def step(x):
                return lambda c, _: ((a(lax.stop_gradient(x)), c * 2)[1], None)

            return jax.grad(lambda x: lax.scan(step(x), x, jnp.zeros(length))[0]), (X,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def rows_of(program, run=True):
    if not run:
        return summarize(jaxcb.explain(program)(X))
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(program)(X))
        jax.effects_barrier()
    return summarize(r.recording)


@pytest.mark.parametrize("kind", ["io", "debug"])
@pytest.mark.parametrize("run", [False, True])
def test_call_in_a_condition_that_xla_never_evaluates_has_a_reason_and_advice(kind, run):
    (found,) = rows_of(predicate(flavor(Hosts(), kind), False, 3), run)
    assert (str(found.status), found.calls, found.expected) == ("optimized_away", 0, 0)
    assert "never evaluates the condition" in found.reason
    assert "in the body" in found.advice


@pytest.mark.parametrize("kind", ["pure", "io", "debug"])
def test_helper_traced_in_a_loop_of_length_0_counts_only_its_other_calls_as_written(kind):
    helper = jax.checkpoint(flavor(Hosts(), kind))

    def program(x):
        y = lax.map(helper, x + jnp.arange(0.0)).sum()
        return helper(x + y) + helper(x + 1)

    (found,) = rows_of(program, False)
    assert (found.expected, found.written) == (2, 2)


def test_loop_in_a_predicate_that_is_evaluated_only_once_has_nothing_elided():
    """JAX evaluates a predicate with an ordered effect before the loop; no run enters this loop."""
    h = Hosts()
    a, first = h.pure("a"), h.debug("first", ordered=True)

    def go(x):
        first(x)
        return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, a(s[1])), (0, x))[1] < 50

    def program(x):
        step = lambda s: (s[0] + 1, s[1])  # noqa: E731
        return lax.while_loop(lambda s: (s[0] < 0) & go(s[1]), step, (0, x))[1]

    found = {row.site.function: row for row in rows_of(program, True)}
    assert h.calls["a"] == 4
    assert (found["a"].calls, found["a"].elided) == (4, 0)


@pytest.mark.parametrize("kind", ["io", "debug", "ordered"])
@pytest.mark.parametrize("run", [False, True])
def test_effect_with_one_path_that_no_run_reaches_has_nothing_elided(kind, run):
    a = flavor(Hosts(), kind)
    (found,) = rows_of(lambda x: lax.cond(True, a, a, x), run)
    assert (found.elided, found.reason, found.written, found.expected) == (
        0,
        "",
        1,
        1 if FOLDS else None,
    )


def test_unused_path_is_reported_if_the_branch_of_the_other_path_is_not_entered():
    a = Hosts().pure("a")
    helper = jax.jit(lambda x: a(x) + 1)

    def program(x):
        helper(x * 2)
        return lax.cond(x > 1e9, helper, lambda x: x, x)

    (ahead,), (found,) = rows_of(program, run=False), rows_of(program)
    assert str(found.status) == "not_reached"
    assert ahead.reason in found.reason
    assert "its result is unused" in found.reason
    assert "did not enter" in found.reason


@pytest.mark.parametrize("start", [0, -2], ids=["not entered", "entered"])
def test_call_that_xla_drops_where_a_predicate_is_evaluated_before_the_loop_is_elided(start):
    """JAX evaluates a predicate with an ordered effect before the loop, too."""
    h = Hosts()
    a, b = h.pure("a"), h.io("b", ordered=True)

    def program(x):
        def p(s):
            first = s[0] == start
            return (s[0] < 0) & (first | (a(s[1]) + b(s[1]) < 50.0))

        return lax.while_loop(p, lambda s: (s[0] + 1, s[1] + 1), (start, x))[1]

    found = {row.site.function: row for row in rows_of(program)}
    assert (found["a"].calls, found["b"].calls) == (-start, 1 - start)
    assert found["a"].elided == 1
    assert "2 call paths, 1 call kept" in found["a"].reason


def maybe_entered(helper):
    """Return a loop over i in 0, 1, 2 around a call that only i = 1, 2 make, as the text says."""

    def body(x, i):
        def p(s):
            return s[0] < (i > 0.5)

        return lax.while_loop(p, lambda s: (s[0] + 1, s[1] + helper(x)), (0, x))[1], None

    return lambda x: lax.scan(body, x, jnp.arange(3.0))[0]


@pytest.mark.parametrize("use", [True, False], ids=["equal calls", "an unused call"])
def test_reason_says_that_the_calls_left_of_several_paths_were_moved_out_of_the_loop(use):
    """XLA calls a moved call more often than the text asks: also where the loop is not entered."""
    h = Hosts()
    helper = jax.jit(h.pure("a"))
    loop = maybe_entered(helper)

    def program(x):
        more = helper(x) + helper(x)
        return loop(x) + more if use else loop(x)

    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(program)(X))
    (found,) = summarize(r.recording)
    assert h.calls["a"] == found.calls == (4 if use else 3)
    assert str(found.status) == "deduplicated"
    assert "kept outside the loop" in found.reason


def test_more_calls_than_written_are_not_elided():
    calls = []
    a = jaxcb.io(lambda: calls.append(1), result=None)

    def program(x):
        return jax.grad(lambda x: lax.fori_loop(0, 0, lambda _, c: (a(), c * 2)[1], x))(x)

    (found,) = rows_of(program)
    assert (found.calls, found.written) == (len(calls), 0)
    assert (found.elided, found.reason) == (0, "")
    assert not calls or "loop of length 0" in " ".join(found.notes)


def test_call_in_a_while_of_one_iteration_is_not_hoisted():
    a = Hosts().pure("a")

    def program(x):
        return lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, a(s[1])), (0, x))[1]

    (found,) = rows_of(program)
    assert (str(found.status), found.calls, found.elided, found.reason) == ("kept", 1, 0, "")


def test_call_moved_out_of_a_while_in_a_scan_of_length_1_is_hoisted():
    hosts = Hosts()
    a, debug = hosts.pure("a"), jaxcb.debug(lambda s: None)

    def turn(c, x):
        def goes_on(s):
            debug(s)
            return (s < 50.0) & (x > 0.5)

        return lax.while_loop(goes_on, lambda s: a(x), c), None

    found = {
        row.site.function: row for row in rows_of(lambda x: lax.scan(turn, x, jnp.arange(1.0)))
    }
    assert str(found["a"].status) == "hoisted"


def test_expected_calls_include_those_of_a_program_compiled_earlier():
    calls = []
    look = jaxcb.debug(lambda x: calls.append(1))

    @jax.jit
    def helper(x):
        look(x)
        return x

    def program(x):
        lax.scan(lambda c, _: (helper(c), None), x, jnp.arange(2.0))
        return helper(x)

    jax.block_until_ready(program(X))
    calls.clear()
    with jaxcb.record() as recorded:
        jax.block_until_ready(program(X))
    (found,) = summarize(recorded.recording)
    assert found.calls == len(calls) == 3
    assert found.expected in (None, 3)
