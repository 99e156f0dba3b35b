"""If a program makes every call in its text, nothing is elided; otherwise the rest is reported."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts, check, each, rows_of, table

X = np.float32(1.5)
ROWS, row = table(X)
# XLA of jaxlib 0.10.0 keeps a conditional with a constant index and effects.
FOLDED = "a" if jax.__version_info__ >= (0, 10, 2) else ""


def count_to(n, call, x):
    """Return a while loop of `n` steps that calls `call`."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, call(s[1])), (0, x))[1]


def scan(f, **options):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, **options)[0]


for kind in ("pure", "ordered"):

    @row(f"{kind}: a helper in the taken branch and outside of it", "a kept 2", known=FOLDED)
    def _(h, kind=kind):
        a = h.of_kind(kind)
        helper = jax.jit(lambda x: a(x) + 1)
        return lambda x: lax.cond(True, helper, lambda x: helper(x * 3), x) + helper(x + 1)

    @row(f"{kind}: one function as both branches", "a kept 1", known=FOLDED)
    def _(h, kind=kind):
        a = h.of_kind(kind)
        return lambda x: lax.cond(True, a, a, x)

    @row(f"{kind}: a while that no run enters", "a kept 1", known="a")
    def _(h, kind=kind):
        a = h.of_kind(kind)
        helper = jax.jit(lambda x: a(x) + 1)
        return lambda x: count_to(0, helper, x) + helper(x + 1)

    @row(f"{kind}: a checkpoint in a scan that no run enters and in a loop", "a kept 2")
    def _(h, kind=kind):
        helper = jax.checkpoint(h.of_kind(kind))

        def f(x):
            step = lambda c, i: (c, helper(c))  # noqa: E731
            y = count_to(0, lambda x: lax.scan(step, x, jnp.arange(3))[0], x)
            return count_to(2 + (x > 9), helper, y)

        return f

    @row(f"{kind}: a branch that no run takes", "a optimized away|not reached 0")
    def _(h, kind=kind):
        a = h.of_kind(kind)
        return lambda x: lax.switch(5, (a, jnp.cos, jnp.sin), x)

    @row(f"{kind}: a branch in a scan of length 3 unrolled by 2", "a kept 3")
    def _(h, kind=kind):
        a = h.of_kind(kind)
        step = lambda c, e: (lax.cond(c > -1e9, a, lambda e: e, e), None)  # noqa: E731
        return lambda x: lax.scan(step, x, jnp.arange(3.0), unroll=2)[0]

    @row(f"{kind}: nested scans, both unrolled", "a kept 15", known="a")
    def _(h, kind=kind):
        a = h.of_kind(kind)
        return scan(scan(lambda c: a(c) + 1, length=5, unroll=2), length=3, unroll=2)


row("all but the last result of an unrolled scan are unused", "a deduplicated 1", known="a")(
    lambda a: lambda x: lax.scan(lambda _, e: (a(e), None), x, jnp.arange(3.0), unroll=2)[0]
)


@row("an unused result of a helper in nested unrolled scans", "a deduplicated 4, b kept 8")
def _(h, a):
    b = h.debug("b")
    helper = jax.jit(lambda x: (b(x), a(x))[1])

    def inner(c, e):
        helper(e)
        return helper(c), None

    nested = lambda c: lax.scan(inner, c, jnp.arange(2.0), unroll=2)[0]  # noqa: E731
    return scan(nested, length=2, unroll=2)


@row("an unused result of a checkpointed helper", "a fewer 1", known="a")
def _(h):
    helper = jax.checkpoint(h.pure("a", vmap_method="sequential_unrolled"))
    return lambda x: (scan(lambda c: helper(x), length=1)(x), helper(x))[0]


def predicate(call, use=True, length=3):
    def p(state):
        y = call(state[1])
        return (state[0] < length) & (y > -1e9) if use else state[0] < length

    return lambda x: lax.while_loop(p, lambda s: (s[0] + 1, s[1] + 1), (0, x))[1]


for kind, line in {
    "io": "optimized away 0",
    "debug": "optimized away 0",
    "ordered": "kept 4",
}.items():
    row(f"{kind} in the condition of a loop whose trip count XLA knows", f"a {line}")(
        lambda h, kind=kind: predicate(h.of_kind(kind), False)
    )
for kind in ("pure", "io"):
    row(f"{kind} that the condition of a loop depends on", "a kept 4")(
        lambda h, kind=kind: predicate(h.of_kind(kind))
    )


@row("debug beside a call that the condition of a loop depends on", "a kept 4, b kept 4")
def _(h, b):
    a = h.of_kind("debug")
    return predicate(lambda x: b(a(x)))


@row("an io helper in the condition and in the body", "a fewer 3", known="a")
def _(h):
    a = h.io("a")
    helper = jax.jit(lambda x: a(x) + 1)

    def p(s):
        helper(s[1])
        return s[0] < 3

    return lambda x: lax.while_loop(p, lambda s: (s[0] + 1, helper(s[1])), (0, x))[1]


def buffer_of(h, **options):
    def a(ctx, out, x):
        h.calls["a"] += 1
        np.asarray(out)[...] = np.asarray(x)

    return jaxcb.buffer_callback(a, jax.ShapeDtypeStruct((), np.float32), **options)


for buffer in (False, True):
    name = "buffer" if buffer else "pure"

    @row(f"a jitted {name} helper in a condition with ordered io", "a kept 4, b kept 4")
    def _(h, buffer=buffer):
        a = buffer_of(h, has_side_effect=True) if buffer else h.pure("a")
        b = h.io("b", ordered=True)
        return predicate(jax.jit(lambda x: (a(x), b(x))[0]))

    for operand, line in {"x": "a hoisted 2, t kept 3", "state": "a kept 3, t kept 3"}.items():

        @row(f"{name} of {operand} beside a tap in a condition", line)
        def _(h, operand=operand, buffer=buffer):
            tap = jaxcb.tap(h.host("t", lambda x, transforms=(): None))
            a = buffer_of(h) if buffer else h.pure("a")
            use = lambda x: lambda s: (tap(s), a(x if operand == "x" else s))[1]  # noqa: E731
            return lambda x: predicate(use(x), length=2)(x)


for kind in ("io", "debug"):
    for length, line in ((0, "a unused 0"), (3, "a kept 3")):

        @row(f"{kind} in a scan of length {length} under grad", line, known="a")
        def _(h, kind=kind, length=length):
            a = h.of_kind(kind)
            body = lambda x: lambda c: (a(lax.stop_gradient(x)), c * 2)[1]  # noqa: E731
            return jax.grad(lambda x: scan(body(x), length=length)(x))


@row("a while of one iteration", "a kept 1")
def _(a):
    return lambda x: count_to(1, a, x)


@row("a call moved out of a while in a scan of length 1", "a hoisted 1, b kept 1")
def _(h, a):
    b = h.debug("b")

    def turn(c, x):
        goes_on = lambda s: (b(s), (s < 50.0) & (x > 0.5))[1]  # noqa: E731
        return lax.while_loop(goes_on, lambda s: a(x), c), None

    return lambda x: lax.scan(turn, x, jnp.arange(1.0))[0]


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_each_call_site_has_the_expected_status_on_several_devices(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    assert "FAILED" not in done.stdout, done.stdout + done.stderr


def ahead_of(program):
    (row,) = summarize(jaxcb.explain(program)(X))
    return row


RUN = pytest.mark.parametrize(
    "row_of", [lambda f: rows_of(f, X)["a"], ahead_of], ids=["run", "explain"]
)


@RUN
@pytest.mark.parametrize("kind", ["io", "debug"])
def test_call_in_a_condition_that_xla_never_evaluates_has_a_reason_and_advice(kind, row_of):
    found = row_of(predicate(Hosts().of_kind(kind), False))
    assert (str(found.status), found.calls, found.expected) == ("optimized_away", 0, 0)
    assert "never evaluates the condition" in found.reason
    assert "in the body" in found.advice


@pytest.mark.parametrize("kind", ["pure", "io", "debug"])
def test_helper_traced_in_a_loop_of_length_0_counts_only_its_other_calls_as_written(kind):
    helper = jax.checkpoint(Hosts().of_kind(kind))

    def program(x):
        y = lax.map(helper, x + jnp.arange(0.0)).sum()
        return helper(x + y) + helper(x + 1)

    found = ahead_of(program)
    assert (found.expected, found.written) == (2, 2)


def test_loop_in_a_predicate_that_is_evaluated_only_once_has_nothing_elided():
    """JAX evaluates a predicate with an ordered effect before the loop; no run enters this loop."""
    h = Hosts()
    a, first = h.pure("a"), h.debug("first", ordered=True)

    def program(x):
        goes_on = lambda s: (s[0] < 0) & ((first(s[1]), count_to(4, a, s[1]))[1] < 50)  # noqa: E731
        return lax.while_loop(goes_on, lambda s: (s[0] + 1, s[1]), (0, x))[1]

    found = rows_of(program, X)["a"]
    assert h.calls["a"] == 4
    assert (found.calls, found.elided) == (4, 0)


@RUN
@pytest.mark.parametrize("kind", ["io", "debug", "ordered"])
def test_effect_with_one_path_that_no_run_reaches_has_nothing_elided(kind, row_of):
    a = Hosts().of_kind(kind)
    found = row_of(lambda x: lax.cond(True, a, a, x))
    assert (found.elided, found.reason, found.written) == (0, "", 1)
    assert found.expected == (1 if FOLDED else None)


def test_unused_path_is_reported_if_the_branch_of_the_other_path_is_not_entered():
    a = Hosts().pure("a")
    helper = jax.jit(lambda x: a(x) + 1)

    def program(x):
        helper(x * 2)
        return lax.cond(x > 1e9, helper, lambda x: x, x)

    ahead, found = ahead_of(program), rows_of(program, X)["a"]
    assert str(found.status) == "not_reached"
    assert all(words in found.reason for words in (ahead.reason, "1 call kept", "did not enter"))


@pytest.mark.parametrize("start", [0, -2], ids=["not entered", "entered"])
def test_nothing_is_claimed_of_a_pure_call_beside_an_ordered_effect_in_a_predicate(start):
    """JAX evaluates a predicate with an ordered effect before the loop, too."""
    h = Hosts()
    a, b = h.pure("a"), h.io("b", ordered=True)

    def program(x):
        def p(s):
            return (s[0] < 0) & ((s[0] == start) | (a(s[1]) + b(s[1]) < 50.0))

        return lax.while_loop(p, lambda s: (s[0] + 1, s[1] + 1), (start, x))[1]

    found = rows_of(program, X)
    assert (found["a"].calls, found["b"].calls) == (-start, 1 - start)
    assert str(found["a"].status) == "unknown"  # a loop that is not entered looks the same


@pytest.mark.parametrize("use", [True, False], ids=["equal calls", "an unused call"])
def test_reason_says_that_the_calls_left_of_several_paths_were_moved_out_of_the_loop(use):
    """XLA calls a moved call more often than the text asks: also where the loop is not entered."""
    h = Hosts()
    helper = jax.jit(h.pure("a"))

    def body(x, i):  # i = 1, 2 make a call, as the text says, and 0 does not
        return lax.while_loop(
            lambda s: s[0] < (i > 0.5), lambda s: (s[0] + 1, s[1] + helper(x)), (0, x)
        )[1], None

    def program(x):
        more = helper(x) + helper(x)
        y = lax.scan(body, x, jnp.arange(3.0))[0]
        return y + more if use else y

    found = rows_of(program, X)["a"]
    assert h.calls["a"] == found.calls == (4 if use else 3)
    assert str(found.status) == "fewer"
    assert "moved calls out of loops" in found.reason


def test_more_calls_than_written_are_not_elided():
    h = Hosts()
    a = jaxcb.io(h.host("a", lambda: None), result=None)
    f = jax.grad(lambda x: lax.fori_loop(0, 0, lambda _, c: (a(), c * 2)[1], x))
    found = rows_of(f, X)["a"]
    assert (found.calls, found.written) == (h.calls["a"], 0)
    assert (found.elided, found.reason) == (0, "")
    assert not h.calls or "loop of length 0" in " ".join(found.notes)


def test_expected_calls_include_those_of_a_program_compiled_earlier():
    h = Hosts()
    look = h.debug("a")
    helper = jax.jit(lambda x: (look(x), x)[1])

    def program():
        jax.block_until_ready((scan(helper, length=2)(X), helper(X)))
        jax.effects_barrier()

    program()
    h.calls.clear()
    with jaxcb.record() as recorded:
        program()
    (found,) = summarize(recorded.recording)
    assert found.calls == h.calls["a"] == 3
    assert found.expected in (None, 3)
