"""A recording says how many of JAX's own callbacks its programs have, which it does not record."""

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recording
from jupyter_jaxcb.report import to_html, to_mimebundle

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def loop(x):
    """A program with three of JAX's own callbacks, one in a loop and one in a branch."""
    jax.debug.print("x = {}", x)
    x = jax.lax.fori_loop(0, 3, lambda _, x: jax.pure_callback(np.cos, SCALAR, x), x)
    return jax.lax.cond(x > 0, lambda: jax.debug.callback(lambda x: None, x), lambda: None), x


def recorded(function, observe=jaxcb.record):
    with observe() as r:
        jax.block_until_ready(jax.jit(function)(np.float32(1)))
        jax.effects_barrier()
    return r.recording


def test_callbacks_of_jax_are_counted_by_every_report_and_kept_in_files():
    recording = recorded(lambda x: loop(x))
    words = "3 callbacks of JAX not recorded; observe_jax() records them"
    assert str(recording) == str(Recording.from_json(recording.to_json())) == words
    assert words in to_html(recording)
    data, _ = to_mimebundle(recording)
    assert [json["headline"] for key, json in data.items() if "jaxcb" in key] == [
        [["quiet", words]]
    ]


def test_callbacks_of_jax_follow_those_that_are_recorded():
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    first = str(recorded(lambda x: loop(double(x))[1])).splitlines()[0]
    assert first.startswith("double · pure · 1 call · () → ()")
    assert "3 callbacks of JAX not recorded" in first


def test_nothing_is_said_if_they_are_observed_or_there_are_none():
    assert "not recorded" not in str(recorded(lambda x: loop(x), jaxcb.observe_jax))
    assert recorded(lambda x: jnp.sin(x)).not_observed == 0


def test_explanation_has_its_own_words():
    explained = jaxcb.explain(loop)(np.float32(1))
    assert explained.not_observed == 3
    assert "3 callbacks of JAX" not in str(explained)
