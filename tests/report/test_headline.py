"""The summary line: problems first, worst first, and no problem is left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import LoweredSite, Site, headline, summarize, to_text

from ._several import called

X = np.float32(1)


def parts(program, *arguments):
    """Return the headline of one run of `program`, failed or not."""
    with jaxcb.record() as recorded:
        try:
            jax.block_until_ready(program(*arguments))
        except jax.errors.JaxRuntimeError:
            pass
    return headline(summarize(recorded.recording))


def named(name, function=np.negative, flavor=jaxcb.pure):
    def host(x):
        return function(x)

    host.__name__ = host.__qualname__ = name
    return flavor(host, result=lambda x: x)


def fail(x):
    raise ValueError("no luck")


fine = [named(f"fine_{n}") for n in range(6)]
nan = named("nan", lambda x: np.float32("nan"))
boom = named("boom", fail)
unused = named("unused")


def test_worst_problem_comes_first_and_the_functions_that_are_fine_are_counted():
    @jax.jit
    def program(x):
        for each in fine:
            x = each(x)
        unused(x)
        return boom(nan(x))

    assert parts(program, X) == [
        ("error", "✕ boom raised ValueError: no luck"),
        ("warning", "⚠ unused never called (unused)"),
        ("warning", "⚠ nan returned NaN"),
        ("kept", "6 more fine"),
    ]


def test_call_that_the_user_stopped_is_no_failure():
    site = Site("pure", "step", "m.py", 3, 0, cell=False)
    text = to_text(called(LoweredSite(site, None, -1, (), ()), error="KeyboardInterrupt: "))
    assert text.startswith("■ step stopped by you")
    assert "raised" not in text and "KeyboardInterrupt" not in text


def test_headline_says_in_few_words_what_costs_more_than_one_may_think():
    def called(x):
        return jaxcb.pure_callback(np.sin, x, x, vmap_method="sequential")

    chosen = jax.vmap(lambda x: jax.lax.cond(x > 0, called, jnp.sin, x))
    assert [
        one.text for one in parts(jax.jit(chosen), jnp.arange(20.0)) if one.tone == "quiet"
    ] == [
        "one call for each batch element",
        "may be called for branches not taken",
    ]


def test_names_and_messages_take_one_short_line_without_control_characters():
    assert parts(named("\u202emodel\n"), X)[0] == ("kept", r"\u202emodel\n")
    for text in ("x" * 500, "one\ntwo"):

        def host(x, text=text):
            raise ValueError(text)

        first = parts(jaxcb.pure(host, result=lambda x: x), X)[0]
        assert "two" not in first[1] and len(first[1]) < 90


def counts_to(limit):
    """Return a function that adds one and returns NaN from `limit` on."""
    return named("step", lambda x: np.float32("nan") if not x < limit else x + 1)


@pytest.mark.kept
@pytest.mark.parametrize(
    ("program", "words"),
    [
        # Later calls get NaN: they count, and the first call is the one to look at.
        (lambda step: jax.lax.fori_loop(0, 10, lambda _, x: step(x), 0.0),
         "in 6 of 10 calls, first: call 5"),
        (lambda step: jax.jit(jax.vmap(step))(jnp.arange(10.0)), "in 6 of 10 calls, first: call 5"),
        (lambda step: [step(x) for x in (1.0, 9.0, 2.0, 3.0)], "in 1 of 4 calls: call 2"),
        (lambda step: [step(x) for x in (8.0, 9.0)], "in all 2 calls"),
        (lambda step: step(9.0), ""),
    ],
)  # fmt: skip
def test_calls_that_returned_nan_are_counted_and_the_first_is_named(program, words):
    step = counts_to(4)
    with jaxcb.record() as recorded:
        fine[0](X)  # numbers are those of the function's own calls
        jax.block_until_ready(program(step))
    said = f"NaN {words}".rstrip()
    summary = next(one for one in summarize(recorded.recording) if one.site.function == "step")
    assert summary.status_words == said
    if len(summarize(recorded.recording)) == 2:
        assert headline([summary])[0] == ("warning", f"⚠ step returned {said}")


@pytest.mark.kept
def test_nan_in_some_of_several_call_sites_is_counted_over_those():
    step = counts_to(4)

    def program(x):
        return step(x), step(x + 2)

    with jaxcb.record() as recorded:
        for x in range(3):
            jax.block_until_ready(program(x + 2.0))
    first = headline(summarize(recorded.recording))[0]
    assert first == ("warning", "⚠ step returned NaN in 4 of 6 calls")


@pytest.mark.kept
def test_large_results_are_not_all_searched_and_the_headline_says_so():
    large = named("large", lambda x: np.full_like(x, np.nan))
    with jaxcb.record() as recorded:
        for _ in range(10):
            large(jnp.ones(5_000)).block_until_ready()
    words = "⚠ large returned NaN in at least 3 of 10 calls, first: call 1"
    assert headline(summarize(recorded.recording))[0].text == words


@pytest.mark.kept
def test_calls_in_parallel_have_no_first_one():
    step = counts_to(4)
    step = jaxcb.pure(step.host.current, result=lambda x: x, executor="threads")
    with jaxcb.record() as recorded:
        jax.vmap(step)(jnp.arange(10.0)).block_until_ready()
    assert headline(summarize(recorded.recording))[0].text.endswith("NaN in 6 of 10 calls")


@pytest.mark.kept
@pytest.mark.parametrize(
    "program", [lambda f, xs: jax.jit(jax.vmap(f))(xs), lambda f, xs: [f(x) for x in xs]]
)
@pytest.mark.parametrize(
    ("bad", "word"),
    [([np.nan], "NaN"), ([np.inf], "infinity"), ([-np.inf, np.nan], "NaN or infinity")],
)
def test_nan_and_infinity_are_told_apart(program, bad, word, tmp_path):
    values = np.float32([*bad, 1.0, 2.0])
    returns = jaxcb.pure(
        named("returns", lambda n: values[int(n)]).host.current, result=lambda x: x,
        vmap_method="sequential",
    )  # fmt: skip
    with jaxcb.record() as recorded:
        jax.block_until_ready(program(returns, np.arange(len(values), dtype=np.float32)))
    recorded.recording.save(tmp_path / "run.jaxcb")
    for recording in (recorded.recording, jaxcb.load(tmp_path / "run.jaxcb")):
        (summary,) = summarize(recording)
        assert summary.status_words.startswith(f"{word} in {len(bad)} of {len(values)} calls")
