"""Recordings and reports count what a mask left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import MaskUse, Recording, load
from jupyter_jaxcb.report import to_html, to_mimebundle
from jupyter_jaxcb.report.summary import Mask, summarize

f = jaxcb.pure(np.sin, result="x")
together = jaxcb.pure(lambda x, w: x * w, result="x", vmap_method="expand_dims")
X = jnp.linspace(-1, 1, 12).reshape(4, 3)


def nested(function):
    return jax.jit(jax.vmap(jax.vmap(function)))


def one(recording):
    (site,) = summarize(recording)
    return site


def test_rows_have_the_numbers_of_the_needed_elements():
    with jaxcb.record() as r:
        nested(lambda x: f.where(x > 0.5, x, otherwise=0))(X).block_until_ready()
    needed = np.flatnonzero(np.asarray(X).ravel() > 0.5)
    assert sorted(call.element for call in r.recording) == list(needed)
    assert r.recording.masks == (MaskUse(0, 12, 3),)
    site = one(r.recording)
    assert (str(site.status), site.calls, site.expected, site.written) == ("kept", 3, None, None)
    assert site.notes == ("its mask was true for 3 of 12 batch elements",)
    assert [shapes.mask for shapes in site.shapes] == [Mask((True, True), 3, 12)]


@pytest.mark.parametrize("program", ["jit", "eager", "vmap", "cond"])
def test_call_whose_mask_is_false_is_kept_though_it_is_not_made(program):
    def g(x):
        return f.where(x > 9, x, otherwise=0)

    run = {
        "jit": lambda: jax.jit(g)(1.0),
        "eager": lambda: g(1.0),
        "vmap": lambda: jax.jit(jax.vmap(g))(X[0]),
        "cond": lambda: jax.jit(lambda x: jax.lax.cond(x < 2, g, lambda x: x, x))(1.0),
    }
    with jaxcb.record() as r:
        jax.block_until_ready(run[program]())
    site = one(r.recording)
    assert (str(site.status), site.calls, site.reason) == ("kept", 0, "")
    count = "3 batch elements" if program == "vmap" else "1 call"
    assert site.notes == (f"its mask was true for 0 of {count}",)


def test_diagram_has_a_row_for_the_mask_and_the_gathered_axis():
    with jaxcb.record() as r:
        nested(lambda x: together.where(x > 0.5, x, 2.0, otherwise=0))(X).block_until_ready()
    drawn = to_html(r.recording)
    assert drawn.count("<table>") == 1
    assert "<strong>1 call for 3 of 12 elements</strong>" in drawn
    assert "<code>mask</code>" in drawn
    assert "<code>not passed</code>" in drawn
    assert "<code>(≤ 12,) float32</code>" in drawn
    assert "(≤ 12,), (1,) → (≤ 12,)" in str(r.recording)


def test_masks_are_saved_and_sent_to_the_front_end(tmp_path):
    with jaxcb.record() as r:
        nested(lambda x: f.where(x > 0.5, x, otherwise=0))(X).block_until_ready()
        f.where(False, X[0], otherwise=0)
    for name in ("r.json", "r.jaxcb"):
        r.recording.save(tmp_path / name)
        assert load(tmp_path / name).masks == r.recording.masks
    assert Recording.from_json(r.recording.to_json()).masks == r.recording.masks
    data, metadata = to_mimebundle(r.recording)
    (mime_type,) = metadata
    first, second = (site["shapes"][0] for site in data[mime_type]["sites"])
    assert [(one.get("needed", 0), one["batch"]) for one in (first, second)] == [(3, 12), (0, 1)]


half = jaxcb.pure(lambda x: x / 2, result="x")


def masked_half(x):
    return half.where(x > 1, x, otherwise=0)


@pytest.mark.parametrize(
    ("body", "notes"),
    [
        (
            half,
            ("7 of 12 batch elements reached it",),
        ),
        (
            masked_half,
            ("its mask was true for 7 of 12 batch elements",),
        ),
    ],
)
def test_loop_whose_elements_finish_at_different_times(body, notes):
    g = jax.jit(jax.vmap(lambda x: jax.lax.while_loop(lambda x: x > 1, body, x)))
    with jaxcb.record() as r:
        g(jnp.array([8.0, 3.0, 4.0, 0.0])).block_until_ready()
    assert one(r.recording).notes == notes


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: jaxcb.pure(np.sin, result="x"), "pass the predicate with .where"),
        (
            lambda: lambda x: jaxcb.pure_callback(np.sin, x, x, vmap_method="sequential"),
            "register the function with jaxcb.pure",
        ),
    ],
)
def test_calls_of_branches_not_taken_have_the_advice_that_helps(make, advice):
    """The rule of a custom_jvp is not known when the branch is batched, so no mask gets there."""
    cos, sin = make(), jax.custom_jvp(jnp.sin)
    sin.defjvp(lambda primals, tangents: (jnp.sin(*primals), cos(*primals) * tangents[0]))

    def total(xs):
        return jax.vmap(lambda x: jax.lax.cond(x > 0.5, sin, jnp.negative, x))(xs).sum()

    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(jax.grad(total))(np.float32([0, 1])))
    (site,) = summarize(r.recording)
    assert site.calls == 2
    assert [note for note in site.notes if advice in note and "branches not taken" in note]


def test_diagram_of_a_branch_names_what_reaches_it():
    f = jax.jit(jax.vmap(lambda x: jax.lax.cond(x > 1, half, jnp.negative, x)))
    with jaxcb.record() as r:
        f(np.float32([0, 2, 3])).block_until_ready()
    drawn, explained = to_html(r.recording), to_html(jaxcb.explain(f)(np.float32([0, 2, 3])))
    assert "<strong>2 calls for 2 of 3 elements</strong>" in drawn
    assert "<code>reached</code>" in drawn
    assert "calls for the elements that reach it" in explained


def test_call_in_the_predicate_of_a_differentiated_loop_is_kept():
    see = jaxcb.debug(lambda x: None)

    def scaled(x):
        def below(c):
            see(c)
            return c < 3

        stopped = jax.lax.stop_gradient(x)
        return x * jax.lax.while_loop(below, lambda c: c + 1, stopped)

    g = jax.jit(jax.vmap(jax.grad(scaled)))
    with jaxcb.record() as r:
        g(np.float32([0, 1])).block_until_ready()
    (site,) = summarize(r.recording)
    assert (site.status, site.calls) == ("kept", 7)
    assert site.notes == ("7 of 8 batch elements reached it",)
