"""Reports of explanations show calls per run and the cost of compilation."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import cost_to_text, summarize, to_text
from tests.stack.elision._battery import Hosts

X = np.arange(1, 4, dtype=np.float32)


def explained(make, *args):
    return jaxcb.explain(make(Hosts()))(*args)


def test_explanation_has_no_calls_no_times_and_no_sample_values():
    recording = explained(lambda h: jax.vmap(h.pure("a")), X)
    (summary,) = summarize(recording)
    assert (summary.calls, summary.crossings, summary.host_ns) == (0, 0, 0)
    assert (summary.expected, summary.written) == (3, 3)
    assert summary.sample_values == ()
    assert summary.errors == ()
    assert to_text(recording) == to_text(recording, times=False)


@pytest.mark.parametrize(
    ("make", "args", "words"),
    [
        (lambda h: h.pure("a"), (X,), "a · pure · 1 call per run"),
        (lambda h: jax.vmap(h.pure("a")), (X,), "a · pure · 3 calls per run"),
        (lambda h: lambda x: (h.pure("a")(x), x)[1], (X,), "nothing uses its result"),
        (lambda h: lambda x: jnp.where(False, h.pure("a")(x), x), (X,), "optimized away"),
        (
            lambda h: (lambda a: lambda x: lax.fori_loop(0, 4, lambda i, c: c + a(x), x))(
                h.pure("a")
            ),
            (X,),
            "(loop-invariant code motion): 1 call per run instead of 4",
        ),
    ],
)
def test_text_shows_the_calls_per_run(make, args, words):
    assert words in to_text(explained(make, *args))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_cost_is_shown_by_program_site_and_method(method):
    recording = explained(lambda h: jax.vmap(h.pure("a", vmap_method=method)), X)
    head, line = cost_to_text(recording).splitlines()
    assert re.fullmatch(
        r"jit_\w+ \(float32\[3\]\): lowered in [\d.,]+ \w+, compiled in [\d.,]+ \w+", head
    )
    assert re.search(rf": a, {method}, 1 host call in the program$", line)
