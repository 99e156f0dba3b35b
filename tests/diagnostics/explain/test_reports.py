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
N = np.arange(1, 4, dtype=np.int32)


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


def test_number_of_calls_that_depends_on_data_is_unknown():
    def make(h):
        a = h.pure("a")
        return lambda x, n: lax.fori_loop(0, n, lambda i, c: a(c), x)

    recording = explained(make, X, np.int32(3))
    (summary,) = summarize(recording)
    assert summary.expected is None
    assert summary.written is None
    assert not re.search(r"\d+ calls? per run", to_text(recording))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_cost_is_shown_by_program_site_and_method(method):
    recording = explained(lambda h: jax.vmap(h.pure("a", vmap_method=method)), X)
    head, line = cost_to_text(recording).splitlines()
    assert re.fullmatch(
        r"jit_\w+ \(float32\[3\]\): lowered in [\d.,]+ \w+, compiled in [\d.,]+ \w+", head
    )
    assert re.search(rf": a, {method}, 1 host call in the program$", line)


def test_cost_counts_the_host_calls_in_the_compiled_program():
    def make(h):
        a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
        return lambda x: (c(x), sum(a(x + i) for i in range(3)) + 0 * b(x))[1]

    text = cost_to_text(explained(make, N))
    assert len(re.findall(": a, 1 host call in the program", text)) == 3
    assert ": b, 0 host calls in the program" in text
    assert ": c, 0 host calls in the program" in text


def test_explanation_has_one_compilation():
    recording = explained(lambda h: h.pure("a"), X)
    (compilation,) = recording.compilations
    assert compilation.compile_ns > 0
    assert compilation.lower_ns > 0
    assert [str(aval) for aval in compilation.arguments] == ["float32[3]"]
    assert compilation.program == recording.outcomes[0].program


def test_text_and_cost_are_empty_without_callbacks():
    recording = jaxcb.explain(lambda x: x + 1)(X)
    assert to_text(recording) == ""
    assert cost_to_text(recording) == ""
    assert summarize(recording) == []
