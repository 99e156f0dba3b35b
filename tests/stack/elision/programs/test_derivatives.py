"""grad, jvp, linearize, remat, custom_jvp and custom_vjp."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import NoteKind
from tests.stack.elision._battery import Hosts, check, each, table

X = np.arange(1, 4, dtype=np.float32)
ROWS, row = table()
POLICIES = jax.checkpoint_policies


def stopped(callback):
    return lambda x: callback(lax.stop_gradient(x))


def with_jvp(a, b):
    """Return a function that calls `a` and whose derivative calls `b`."""
    f = jax.custom_jvp(lambda x: a(x))

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), b(*primals) * tangents[0]

    return f


def with_vjp(a, b, c):
    """Return a function that calls `a`, and `b` forwards and `c` backwards under a derivative."""
    f = jax.custom_vjp(lambda x: a(x))
    f.defvjp(lambda x: (b(x), x), lambda x, ct: (c(x) * ct,))
    return f


@row("grad does not need a result that is only added", {"a": "unused 0"}, (0, 0))
def _(h):
    a = stopped(h.pure("a"))
    return jax.jit(jax.grad(lambda x: (x * x + a(x)).sum())), (X,)


@row("value_and_grad needs a result that is only added", {"a": "kept 1"}, (1, 1))
def _(h):
    a = stopped(h.pure("a"))
    return jax.jit(jax.value_and_grad(lambda x: (x * x + a(x)).sum())), (X,)


@row("value_and_grad whose value is dropped", {"a": "unused 0"}, (0, 0))
def _(h):
    a = stopped(h.pure("a"))
    f = jax.value_and_grad(lambda x: (x * x + a(x)).sum())
    return lambda x: f(x)[1], (X,)


@row("grad needs a result that is a factor", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = stopped(h.pure("a"))
    return jax.jit(jax.grad(lambda x: (x * a(x)).sum())), (X,)


@row("grad keeps io and debug", {"a": "kept 1", "b": "kept 1"}, (2, 2), known="a b")
def _(h):
    a, b = h.io("a"), h.debug("b")

    def f(x):
        a(lax.stop_gradient(x))
        b(x)
        return (x * x).sum()

    return jax.jit(jax.grad(f)), (X,)


@row("grad outside of jit makes a call whose result is unused", {"a": "kept 1"})
def _(h):
    a = stopped(h.pure("a"))
    jax.grad(lambda x: (x * x + a(x)).sum())(X)


@row("custom_jvp without a derivative", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    return with_jvp(h.pure("a"), h.pure("b")), (X,)


@row("custom_jvp under grad", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return jax.jit(jax.grad(lambda x: f(x).sum())), (X,)


@row("custom_jvp under value_and_grad", {"a": "kept 1", "b": "kept 1"}, (2, 2))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), (X,)


@row("custom_jvp under jvp", {"a": "kept 1", "b": "kept 1"}, (2, 2), known="a b")
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return lambda x: jax.jvp(f, (x,), (x,)), (X,)


@row("jvp of which only the tangent is used", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return lambda x: jax.jvp(f, (x,), (x,))[1], (X,)


@row("jvp of which only the value is used", {"a": "kept 1", "b": "unused 0"}, (1, 1))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return lambda x: jax.jvp(f, (x,), (x,))[0], (X,)


@row("linearize, applied to two tangents", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))

    def g(x):
        _, tangent = jax.linearize(f, x)
        return tangent(x) + tangent(x + 1)

    return g, (X,)


@row("custom_vjp without a derivative", {"a": "kept 1"}, (1, 1))
def _(h):
    return with_vjp(h.pure("a"), h.pure("b"), h.pure("c")), (X,)


@row("custom_vjp under grad", {"b": "unused 0", "c": "kept 1", "a": "unused|absent 0"}, (1, 1))
def _(h):
    f = with_vjp(h.pure("a"), h.pure("b"), h.pure("c"))
    return jax.jit(jax.grad(lambda x: f(x).sum())), (X,)


@row(
    "custom_vjp under value_and_grad",
    {"b": "kept 1", "c": "kept 1", "a": "unused|absent 0"},
    (2, 2),
)
def _(h):
    f = with_vjp(h.pure("a"), h.pure("b"), h.pure("c"))
    return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), (X,)


@row("jacfwd makes one call for all directions", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    f = with_jvp(h.pure("a"), h.pure("b"))
    return jax.jit(jax.jacfwd(f)), (X,)


@row("hessian", {"a": "unused 0", "b": "kept 1", "b:2": "kept 1", "c": "kept 1"}, (3, 3))
def _(h):
    slope = with_jvp(h.pure("b"), h.pure("c"))
    f = with_jvp(h.pure("a"), slope)
    return jax.jit(jax.hessian(lambda x: (f(x) * 2).sum() * x.sum())), (X,)


def remat(policy):
    """Return a program with a checkpointed call whose result its derivative needs."""

    def program(h):
        a = stopped(h.pure("a"))
        f = jax.checkpoint(lambda x: jnp.sin(x * a(x)), policy=policy)
        return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), (X,)

    return program


row("remat that saves nothing calls twice", {"a": "kept 2"}, (2, 2))(remat(None))
row("remat that saves everything calls once", {"a": "kept 1"}, (1, 1))(
    remat(POLICIES.everything_saveable)
)
row("remat that saves dots calls twice", {"a": "kept 2"}, (2, 2))(remat(POLICIES.dots_saveable))


@row("remat whose forward values are not needed", {"a": "kept 1"}, (1, 1))
def _(h):
    a = stopped(h.pure("a"))
    f = jax.checkpoint(lambda x: jnp.sin(x * a(x)))
    return jax.jit(jax.grad(lambda x: f(x).sum())), (X,)


@pytest.mark.parametrize(
    ("policy", "needs_value", "again"),
    [
        (None, True, True),
        (POLICIES.everything_saveable, True, False),
        (POLICIES.dots_saveable, True, True),
        (None, False, False),
    ],
    ids=["nothing saved", "everything saved", "dots saved", "value not needed"],
)
def test_note_says_that_a_checkpoint_makes_the_call_again(policy, needs_value, again):
    a = stopped(Hosts().pure("a"))
    f = jax.checkpoint(lambda x: jnp.sin(x * a(x)), policy=policy)
    derivative = jax.value_and_grad if needs_value else jax.grad
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(derivative(lambda x: f(x).sum()))(X))
    (outcome,) = r.recording.outcomes
    assert any(note.kind is NoteKind.RUN_AGAIN for note in outcome.notes) is again
    assert len(r.recording) == 1 + again


def noted_again(program):
    """Return the number of calls, and whether a note says that some are made again."""
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(program)(jnp.float32(1)))
    notes = [note.kind for outcome in r.recording.outcomes for note in outcome.notes]
    return len(r.recording), NoteKind.RUN_AGAIN in notes


def test_call_outside_of_the_checkpoint_is_not_its_call_again():
    sine = jaxcb.pure(np.sin, result="x")
    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(*primals) * tangents[0]))
    f = jax.jit(lambda x: jnp.sin(sine(x)))
    last, first = jax.checkpoint(f), jax.checkpoint(f)
    assert noted_again(jax.grad(lambda x: last(f(x)))) == (2, False)
    assert noted_again(jax.grad(lambda x: f(first(x)))) == (3, True)


def test_inner_checkpoint_makes_the_call_again_even_if_the_forward_pass_does_not():
    a = stopped(Hosts().pure("a"))
    inner = jax.checkpoint(lambda x: jnp.sin(x * a(x)))
    outer = jax.checkpoint(lambda x: jnp.cos(inner(x)))
    assert noted_again(jax.grad(outer)) == (2, True)


def test_no_note_says_that_a_call_is_made_again_if_xla_removed_one():
    a = stopped(Hosts().pure("a"))
    f = jax.checkpoint(lambda x: jnp.sin(x * a(x)))

    def slope(x):
        value, slope = jax.value_and_grad(lambda x: f(x).sum())(x)
        return lax.select(jnp.zeros(3) > 1, value + slope, slope)  # XLA computes the predicate

    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(slope)(X))
    (outcome,) = r.recording.outcomes
    assert (outcome.traced_paths, len(r.recording)) == (2, 1)
    assert all(note.kind is not NoteKind.RUN_AGAIN for note in outcome.notes)


@row("remat that XLA may undo", lambda n: {"a": "kept 2" if n[1] == 2 else "kept|deduplicated 1"})
def _(h):
    a = stopped(h.pure("a"))
    f = jax.checkpoint(lambda x: jnp.sin(x * a(x)), prevent_cse=False)
    return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), (X,)


@row("remat with a debug", lambda n: {"a": f"kept {n[1]}"})
def _(h):
    a = h.debug("a")
    f = jax.checkpoint(lambda x: (a(x), jnp.sin(x))[1])
    return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), (X,)


@row("remat without a derivative", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = stopped(h.pure("a"))
    return jax.checkpoint(lambda x: jnp.sin(x * a(x))), (X,)


@row("grad of a scan makes one call per iteration", {"a": "kept 4"}, known="a")
def _(h):
    a = stopped(h.pure("a"))

    def f(x):
        return lax.scan(lambda c, _: (c * a(c), None), x, length=4)[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("an invariant call under grad of a scan", {"a": "hoisted 1"}, known="a")
def _(h):
    a = stopped(h.pure("a"))

    def f(x):
        y = lax.stop_gradient(x)
        return lax.scan(lambda c, _: (c * a(y), None), x, length=4)[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("an invariant call under value_and_grad of a scan", {"a": "hoisted 1"}, known="a")
def _(h):
    a = h.pure("a")

    def f(x):
        return lax.scan(lambda c, _: (c * a(X), None), x, length=4)[0].sum()

    return jax.jit(jax.value_and_grad(f)), (X,)


@row("io without operands under grad of a scan", {"a": "hoisted 1"}, (1, 1), known="a")
def _(h):
    a = h.draw("a")

    def f(x):
        return lax.scan(lambda c, _: (c * a(), None), x, length=5)[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("debug without operands under grad of a scan", lambda n: {"a": "hoisted 1"}, (1, 1))
def _(h):
    a = h.debug("a")

    def f(x):
        return lax.scan(lambda c, _: (a(), (c * c, None))[1], x, length=5)[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("io without operands in a scan", {"a": "kept 5"}, (1, 1), known="a")
def _(h):
    a = h.draw("a")
    return lambda x: lax.scan(lambda c, _: (c * a(), None), x, length=5)[0], (X,)


@row("io of the index under grad of a scan", {"a": "kept 5"})
def _(h):
    a = h.io("a")

    def f(x):
        return lax.scan(lambda c, i: (c * a(i), None), x, jnp.arange(5.0))[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("io without operands under grad of a scan of length 1", {"a": "kept 1"})
def _(h):
    a = h.draw("a")

    def f(x):
        return lax.scan(lambda c, _: (c * a(), None), x, length=1)[0].sum()

    return jax.jit(jax.grad(f)), (X,)


@row("grad hoists a call out of the inner of two loops, the outer of length 1", {"a": "hoisted 1"})
def _(h):
    a = h.pure("a")

    def inner(x, k):
        return lax.scan(lambda c, _: (c * a(k), None), x, None, length=5)[0]

    def outer(x, ks):
        return lax.scan(lambda c, k: (inner(c, k), None), x, ks)[0]

    return jax.grad(lambda x, ks: outer(x, ks).sum()), (X, X[:1])


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
