"""vmap: batch elements, unbatched calls, size 0, and loops and programs around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recording
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table(XS)


def no_element(counts):
    return "a kept 1" if counts[1] else "a unused|optimized away 0"


row("a call with an empty result is elided", no_element)(lambda a: (a, (X[:0],)))


@row("no batch elements to call at once", no_element)
def _(h):
    return jax.vmap(h.pure("a", vmap_method="expand_dims")), (XS[:0],)


row("vmap of a scan with an invariant call", "a hoisted 4", (1, 1))(
    lambda a: jax.vmap(lambda x: lax.scan(lambda c, _: (c + a(x), None), x, length=3)[0])
)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def only_row(run):
    """Return the status, calls and reason of the only row of a recording of `run`."""
    with jaxcb.record() as seen:
        jax.block_until_ready(run())
        jax.effects_barrier()
    (found,) = summarize(Recording.from_json(seen.recording.to_json()))
    return str(found.status), found.calls, found.reason, found.notes


def never(x):
    pytest.fail("it was called")


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_reason_of_a_call_without_elements_is_the_empty_batch(method):
    host = jaxcb.pure(never, result="x", vmap_method=method)
    _, calls, reason, _ = only_row(lambda: jax.jit(jax.vmap(host))(jnp.zeros(0)))
    assert calls == 0 and reason.startswith("vmap maps it over an axis of size 0")


@pytest.mark.parametrize(
    ("register", "options"),
    [(jaxcb.pure, {"result": "x"}), (jaxcb.io, {"result": None}), (jaxcb.debug, {})],
    ids=["pure", "io", "debug"],
)
def test_eager_call_without_elements_is_reported_as_elided(register, options):
    host = register(never, **options)
    status, calls, reason, _ = only_row(
        lambda: jax.vmap(lambda x: (host(x), x)[1])(jnp.arange(0.0))
    )
    assert (status, calls) == ("unused", 0)
    assert reason.startswith("vmap mapped it over an axis of size 0")


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.pure_callback])
@pytest.mark.parametrize(
    ("jit", "expected"),
    [(lambda f: f, "unused"), (jax.jit, "optimized_away")],
    ids=["eager", "jit"],
)
def test_call_whose_result_is_empty_is_reported_as_elided(flavor, jit, expected):
    f = flavor(never, result="x") if flavor is jaxcb.pure else lambda x: flavor(never, x, x)
    status, calls, reason, _ = only_row(lambda: jit(f)(jnp.zeros((2, 0))))
    assert (status, calls) == (expected, 0)
    assert "its result is empty" in reason


def test_debug_call_has_no_result_that_could_be_empty():
    debug = jax.jit(jaxcb.debug(lambda x: None))
    assert only_row(lambda: debug(jnp.zeros((2, 0))))[:3] == ("kept", 1, "")


@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io, jaxcb.debug])
@pytest.mark.parametrize(
    ("vmaps", "words"),
    [
        (lambda f: jax.vmap(jax.vmap(f)), "no argument is batched: one call serves 6 batch"),
        (lambda f: f, ""),
    ],
    ids=["2 × 3 elements", "no vmap"],
)
def test_note_says_that_an_eager_call_without_batched_arguments_serves_all_elements(
    register, vmaps, words
):
    drawn = []
    options = {} if register is jaxcb.debug else {"result": np.float32(0)}
    draw = register(lambda: np.float32(drawn.append(1) or len(drawn)), **options)
    _, calls, _, notes = only_row(lambda: vmaps(lambda x: (draw(), x)[1])(jnp.zeros((2, 3))))
    assert calls == len(drawn) == 1
    assert "".join(notes).startswith(words) and bool(notes) == bool(words)


def test_calls_of_a_batching_rule_have_no_note_about_serving_several_elements():
    """The rule of a custom_vmap takes the whole batch and may make any number of calls."""
    host = jaxcb.pure(lambda x: x, result="x")
    f = jax.custom_batching.custom_vmap(host)

    @f.def_vmap
    def rule(size, batched, x):
        return jnp.stack([host(x[element]) for element in range(size)]), True

    assert only_row(lambda: jax.vmap(f)(jnp.arange(3.0))) == ("kept", 3, "", ())
