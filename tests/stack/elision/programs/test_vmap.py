"""vmap: batch elements, unbatched calls, size 0, and loops and programs around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import NoteKind, Recording
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts, check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
NONE = XS[:0]
ROWS, row = table()


@row("batch elements called one by one", {"a": "kept 4"}, (1, 1), known="a")
def _(h):
    return jax.jit(jax.vmap(h.pure("a"))), (XS,)


@row("batch elements called at once", {"a": "kept 1", "b": "kept 1"}, (2, 2), known="a b")
def _(h):
    a, b = h.pure("a", vmap_method="expand_dims"), h.pure("b", vmap_method="broadcast_all")
    return jax.jit(jax.vmap(lambda x: a(x) + b(x))), (XS,)


@row("io and debug for each batch element", {"a": "kept 4", "b": "kept 4"}, known="a b")
def _(h):
    a, b = h.io("a"), h.debug("b")
    return jax.jit(jax.vmap(lambda x: (b(x), a(x))[1])), (XS,)


@row("two vmaps, element by element and at once", {"a": "kept 12", "b": "kept 1"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b", vmap_method="expand_dims")
    return jax.jit(jax.vmap(jax.vmap(lambda x: a(x) + b(x)))), (XS,)


@row(
    "no argument is batched: one call",
    {"a": "kept 1"},
    (1, 1),
    notes={"a": "no argument is batched"},
    known="a",
)
def _(h):
    a = h.pure("a")
    return lambda xs, k: jax.vmap(lambda x: a(k) + x)(xs), (XS, X)


@row("debug without batched arguments", lambda n: {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = h.debug("a")
    return lambda xs, k: jax.vmap(lambda x: (a(k), x)[1])(xs), (XS, X)


@row("an unused call for each batch element", {"a": "unused 0", "b": "kept 4"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(jax.vmap(lambda x: (a(x), b(x))[1])), (XS,)


@row("zero times an integer for each batch element", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")
    return jax.jit(jax.vmap(lambda x: x + 0 * a(x))), (XS.astype(np.int32),)


@row(
    "no batch elements to call one by one",
    lambda n: {"a": "unused 0" if not n[0] else "optimized away|not reached 0"},
)
def _(h):
    return jax.jit(jax.vmap(h.pure("a"))), (NONE,)


@row(
    "no batch elements to call at once",
    lambda n: {"a": "kept 1" if n[1] else "unused|optimized away 0"},
)
def _(h):
    return jax.jit(jax.vmap(h.pure("a", vmap_method="expand_dims"))), (NONE,)


@row(
    "no batch elements of io and debug",
    lambda n: dict.fromkeys("ab", "unused 0" if not n[0] else "optimized away|not reached 0"),
)
def _(h):
    a, b = h.io("a"), h.debug("b")
    return jax.jit(jax.vmap(lambda x: (b(x), a(x))[1])), (NONE,)


@row("a call with an empty operand is made", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.debug("a")
    return lambda x: (a(x), x)[1], (X[:0],)


@row(
    "a call with an empty result is elided",
    lambda n: {"a": "kept 1" if n[1] else "unused|optimized away 0"},
)
def _(h):
    return h.pure("a"), (X[:0],)


@row("one batch element", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    return jax.jit(jax.vmap(h.pure("a"))), (XS[:1],)


@row("vmap of a scan", {"a": "kept 12"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    scanned = lambda x: lax.scan(lambda c, _: (a(c), None), x, length=3)[0]  # noqa: E731
    return jax.jit(jax.vmap(scanned)), (XS,)


@row("vmap of a scan with an invariant call", {"a": "hoisted 4"}, (1, 1))
def _(h):
    a = h.pure("a")
    scanned = lambda x: lax.scan(lambda c, _: (c + a(x), None), x, length=3)[0]  # noqa: E731
    return jax.jit(jax.vmap(scanned)), (XS,)


@row("a scan of vmaps", {"a": "kept 12"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda xs: lax.scan(lambda c, _: (jax.vmap(a)(c), None), xs, length=3)[0], (XS,)


@row("vmap outside of jit", {"a": "kept 4", "b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b", vmap_method="expand_dims")
    jax.vmap(a)(XS)
    jax.vmap(b)(XS)


@row("vmap outside of jit with an unused result", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    jax.vmap(lambda x: (a(x), x)[1])(XS)


@row("vmap of grad", {"a": "kept 4"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    f = jax.grad(lambda x: (x * a(lax.stop_gradient(x))).sum())
    return jax.jit(jax.vmap(f)), (XS,)


@row("an inner jit called twice under vmap", {"a": "deduplicated 4"}, known="a")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return jax.jit(jax.vmap(lambda x: g(x) + 2 * g(x))), (XS,)


@row("jnp.vectorize", {"a": "kept 4"}, (1, 1))
def _(h):
    a = h.pure("a")
    return jnp.vectorize(a, signature="(n)->(n)"), (XS,)


@row("vmap with a named axis and a collective", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return jax.jit(jax.vmap(lambda x: x + a(lax.psum(x, "i")), axis_name="i")), (XS,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


@pytest.mark.parametrize("batched", [False, True])
def test_branches_run_for_every_element_only_if_the_predicate_is_batched(batched):
    a = Hosts().pure("a")
    choose = lambda on, x: lax.cond(on, a, lambda y: y, x)  # noqa: E731
    axes = (0 if batched else None, 0)
    with jaxcb.record() as r:
        jax.jit(jax.vmap(choose, axes))(
            np.full(4, True)[() if batched else 0], XS
        ).block_until_ready()
    (outcome,) = r.recording.outcomes
    assert any(note.kind is NoteKind.ALL_BRANCHES_RUN for note in outcome.notes) is batched


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_reason_of_a_call_without_elements_is_the_empty_batch(method):
    h = Hosts()
    a = h.pure("a", vmap_method=method)
    with jaxcb.record() as r:
        jax.jit(jax.vmap(a))(np.zeros((0,), np.float32)).block_until_ready()
    (summary,) = summarize(r.recording)
    assert summary.elided == 1 and not h.calls
    assert summary.reason.startswith("vmap maps it over an axis of size 0")


@pytest.mark.parametrize(
    ("register", "options"),
    [(jaxcb.pure, {"result": "x"}), (jaxcb.io, {"result": None}), (jaxcb.debug, {})],
    ids=["pure", "io", "debug"],
)
def test_eager_call_without_elements_is_reported_as_elided(register, options):
    host = register(lambda x: pytest.fail("it was called"), **options)
    with jaxcb.record() as seen:
        jax.vmap(lambda x: (host(x), x)[1])(jnp.arange(0.0))
    status, calls, reason = only_row(seen)
    assert (status, calls) == ("unused", 0)
    assert reason.startswith("vmap mapped it over an axis of size 0")


def only_row(seen):
    """Return the status, calls and reason of the only row of a recording."""
    (found,) = summarize(seen.recording)
    return str(found.status), found.calls, found.reason


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.pure_callback])
def test_call_whose_result_is_empty_is_reported_as_elided(flavor):
    def host(x):
        pytest.fail("it was called")

    f = flavor(host, result=lambda x: x) if flavor is jaxcb.pure else lambda x: flavor(host, x, x)
    why = "its result is empty, so there is nothing to call it for"
    for call, status in ((f, "unused"), (jax.jit(f), "optimized_away")):
        with jaxcb.record() as seen:
            assert call(jnp.zeros((2, 0))).shape == (2, 0)
        assert only_row(seen) == (status, 0, why)
    with jaxcb.record() as seen:
        jax.jit(jaxcb.debug(lambda x: None))(jnp.zeros((2, 0)))
    assert only_row(seen) == ("kept", 1, "")


@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io, jaxcb.debug])
def test_note_says_that_an_eager_call_without_batched_arguments_serves_all_elements(register):
    drawn = []
    options = {} if register is jaxcb.debug else {"result": np.float32(0)}
    draw = register(lambda: np.float32(drawn.append(1) or len(drawn)), **options)

    def program(x):
        draw()
        return x

    for elements, call in ((6, jax.vmap(jax.vmap(program))), (1, program)):
        with jaxcb.record() as seen:
            call(jnp.zeros((2, 3)))
        (found,) = summarize(Recording.from_json(seen.recording.to_json()))
        words = f"no argument is batched: one call serves {elements} batch elements"
        assert (found.calls, found.notes) == (1, (words,) if elements > 1 else ())
    assert len(drawn) == 2
    with jaxcb.record() as seen:
        jax.vmap(jaxcb.debug(lambda x: None))(jnp.zeros(3))
    assert summarize(seen.recording)[0].notes == ()


def test_calls_of_a_batching_rule_have_no_note_about_serving_several_elements():
    """The rule of a custom_vmap takes the whole batch and may make any number of calls."""
    called = []
    host = jaxcb.pure(lambda x: (called.append(1), x)[1], result=lambda x: x)

    @jax.custom_batching.custom_vmap
    def f(x):
        return host(x)

    @f.def_vmap
    def rule(size, batched, x):
        return jnp.stack([host(x[element]) for element in range(size)]), True

    with jaxcb.record() as seen:
        jax.vmap(f)(jnp.arange(3.0))
    (found,) = summarize(seen.recording)
    assert (found.calls, len(called), found.notes) == (3, 3, ())
