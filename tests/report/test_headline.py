"""The summary line: problems first, worst first, and no problem is left out."""

import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import to_mimebundle
from tests.interface import headline, status_words, summarize

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


def test_headline_of_one_function_that_is_fine_gives_its_flavor_calls_and_shapes():
    found = parts(jax.jit(fine[0]), X)
    assert found == [("kept", text) for text in ("fine_0", "pure", "1 call", "() → ()")]


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


def test_few_functions_are_all_named():
    found = parts(jax.jit(lambda x: (unused(x), fine[0](x), fine[1](x))[1:]), X)
    assert found == [
        ("warning", "⚠ unused never called (unused)"),
        ("kept", "fine_0 1 call"),
        ("kept", "fine_1 1 call"),
    ]


def test_problems_that_are_not_named_are_counted_by_tone():
    bad = [named(f"bad_{n}", lambda x: np.float32("inf")) for n in range(7)]

    def program(x):
        for each in [*bad, *fine]:
            x = each(X)
        return x

    found = parts(program, X)
    assert found[:4] == [("warning", f"⚠ bad_{n} returned infinity") for n in range(4)]
    assert found[4:] == [("warning", "⚠ 3 more with warnings"), ("kept", "6 more fine")]


def test_one_call_site_of_several_that_is_never_called_is_named_by_its_line():
    def program(x):
        fine[0](x)
        return fine[0](x + 1)

    line = program.__code__.co_firstlineno + 1
    first, *rest = parts(jax.jit(program), X)
    assert first == ("warning", f"⚠ fine_0, test_headline.py:{line}: never called (unused)")
    assert rest[:3] == [("kept", "fine_0"), ("kept", "pure"), ("kept", "1 call")]


def test_function_with_several_problems_has_each_of_them_in_the_headline():
    def program(x):
        nan(x)
        return nan(x + 1)

    line = program.__code__.co_firstlineno + 1
    first, second, *_ = parts(jax.jit(program), X)
    assert first == ("warning", f"⚠ nan, test_headline.py:{line + 1}: returned NaN")
    assert second == ("warning", f"⚠ nan, test_headline.py:{line}: never called (unused)")


def test_calls_of_a_site_that_the_user_stopped_are_not_counted_as_those_of_others():
    def host(x):
        signal.raise_signal(signal.SIGINT)  # Ctrl-C
        return x

    stopped, other = named("stopped", host), named("other", lambda x: x)
    with jaxcb.record() as recorded, pytest.raises(KeyboardInterrupt):
        jax.block_until_ready(jax.jit(lambda x: stopped(other(x)))(X))
    assert [part.text for part in headline(summarize(recorded.recording))] == [
        "■ stopped stopped by you in call 1",
        "other 1 call",
    ]


def test_call_that_the_user_stopped_is_no_failure():
    calls = []

    def host(x):
        calls.append(x)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)  # Ctrl-C
        return x

    step = named("step", host)
    with jaxcb.record() as recorded, pytest.raises(KeyboardInterrupt):
        jax.block_until_ready(
            jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, y: step(y), x))(X)
        )
    (site,) = summarize(recorded.recording)
    assert (site.consequence, site.errors) == ("stopped", ())
    assert headline([site])[0] == ("quiet", "■ step stopped by you in call 3")
    data, _ = to_mimebundle(recorded.recording)
    text, page = data["text/plain"], data["text/html"]
    assert "stopped by you in call 3" in text and "■ stopped by you in call 3" in page
    assert "raised" not in text + page and "KeyboardInterrupt" not in text + page


def test_up_to_three_call_sites_that_are_never_called_are_named_and_more_are_counted():
    def program(x):
        fine[0](x)
        fine[0](x + 2)
        return fine[0](x + 1)

    def more(x):
        fine[0](x), fine[0](x + 2), fine[0](x + 3), fine[0](x + 4)
        return fine[0](x + 1)

    line = program.__code__.co_firstlineno + 1
    first = parts(jax.jit(program), X)[0].text.replace(f"test_headline.py:{line}", "A")
    first = first.replace(f"test_headline.py:{line + 1}", "B")
    assert first == "⚠ fine_0, A and B: never called (unused)"
    assert parts(jax.jit(more), X)[0] == (
        "warning", "⚠ fine_0: 4 of 5 call sites never called (unused)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "sign", "what"),
    [(2, "✕", "raised ValueError: no luck"), (3, "⚠", "returned NaN")],
)
def test_working_calls_of_a_function_with_a_flagged_call_site_are_counted(bad, sign, what):
    drag = named("drag", lambda x: fail(x) if x == 2 else np.float32("nan") if x == 3 else x)

    def program(x):
        for _ in range(3):
            fine[0](drag(x))
        return drag(x + (bad - x))

    place = f"test_headline.py:{program.__code__.co_firstlineno + 3}"
    first, *rest = parts(program, X)
    assert first.text == f"{sign} drag, {place}: {what}; 3 calls elsewhere"
    assert rest == [("kept", "fine_0 3 calls")]


@pytest.mark.parametrize("ahead", [False, True])
def test_working_calls_of_a_function_with_an_unused_call_are_counted(ahead):
    def program(x):
        unused(x)
        return fine[0](unused(x + 1)), unused(x + 2)

    place = f"test_headline.py:{program.__code__.co_firstlineno + 1}"
    found = headline(summarize(jaxcb.explain(program)(X))) if ahead else parts(jax.jit(program), X)
    per_run = " per run" * ahead
    assert found[0].text == (
        f"⚠ unused, {place}: never called (unused); 2 calls{per_run} elsewhere"
    )
    assert [part.text for part in found[1:]] == [f"fine_0 1 call{per_run}"]


def test_deduplicated_and_hoisted_calls_are_no_problem():
    inner = jax.jit(fine[0])

    def deduplicated(x):
        return inner(x) + inner(x)

    def hoisted(x):
        return jax.lax.fori_loop(0, 4, lambda i, total: total + fine[0](x), x)

    assert parts(jax.jit(deduplicated), X)[2] == ("kept", "1 call (deduplicated)")
    assert parts(jax.jit(hoisted), X)[2] == ("kept", "1 call (hoisted)")


def test_branch_that_was_not_taken_is_no_problem():
    found = parts(jax.jit(lambda x: jax.lax.cond(x > 5, fine[0], fine[1], x)), X)
    assert sorted(found) == [("kept", "fine_1 1 call"), ("quiet", "fine_0 0 calls (not reached)")]


def in_each_branch(x):
    return jax.lax.cond(x > 0, lambda x: fine[0](x), lambda x: fine[1](x), x)


def compiled_anew(x):
    for _ in range(3):
        x = jax.jit(lambda x: fine[0](x) + 1)(x)
    return x


@pytest.mark.parametrize(
    ("program", "hints"),
    [
        (jax.vmap(fine[0]), ["one call for each batch element"]),
        (compiled_anew, ["compiled 3 times"]),
        (
            jax.jit(jax.vmap(lambda x: jax.lax.cond(x > 0, lambda x: fine[0](x), jnp.sin, x))),
            ["one call for each batch element", "may be called for branches not taken"],
        ),
    ],
)
def test_headline_says_in_few_words_what_costs_more_than_one_may_think(program, hints):
    found = parts(program, jnp.arange(20.0))
    assert [part.text for part in found if part.tone == "quiet"] == hints


def test_hints_follow_each_of_several_functions():
    found = parts(jax.jit(jax.vmap(in_each_branch)), jnp.arange(20.0))
    words = "20 calls (one call for each batch element, may be called for branches not taken)"
    assert sorted(part.text for part in found) == [f"fine_0 {words}", f"fine_1 {words}"]


def test_further_errors_of_a_function_are_counted():
    several = named("several", lambda x: fail(x) if x < 2 else np.zeros(7))
    with jaxcb.record() as recorded:
        for x in (1.0, 2.0):
            with pytest.raises(Exception, match="several"):
                several(jnp.float32(x)).block_until_ready()
    found = headline(summarize(recorded.recording))
    assert found[0].text.startswith("✕ several raised ValueError: no luck and 1 more")


def test_control_characters_of_names_are_escaped():
    found = parts(named("\u202emodel\n"), X)
    assert found[0] == ("kept", r"\u202emodel\n")


@pytest.mark.parametrize("text", ["x" * 500, "one\ntwo"])
def test_error_message_is_cut_to_one_short_line(text):
    def host(x):
        raise ValueError(text)

    first = parts(jaxcb.pure(host, result=lambda x: x), X)[0]
    assert "two" not in first[1]
    assert len(first[1]) < 90


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
    assert status_words(summary) == said
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
        assert status_words(summary).startswith(f"{word} in {len(bad)} of {len(values)} calls")
