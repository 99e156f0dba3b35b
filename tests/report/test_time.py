"""What took the time of the code: host functions, compilation, the rest."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import (
    MIME_TYPE,
    Aval,
    Compilation,
    LoweredSite,
    Program,
    Recorder,
    Recording,
    Site,
    headline,
    record_call,
    summarize,
    time_split,
    to_html,
    to_markdown,
    to_mimebundle,
    to_page,
    to_text,
)

MS = 1_000_000
SITE = Site("pure", "simulate", "<cell>", 3, 0, cell=True, source="simulate(x)")
PROGRAM = Program("jit_f", "cpu")
COMPILED = Compilation(PROGRAM, 1, (), 30 * MS, 72 * MS)


def recorded(
    wall_ms, *calls, ended_ms=10_000, compiled=0, compilations=(), site=SITE, results=(), **more
):
    """Return a recording of code of `wall_ms`, with calls from and to these milliseconds."""
    recorder = Recorder(clock=lambda: 0)
    recorder.bound(site)
    fact = LoweredSite(site, PROGRAM, 0, (Aval((), "float32"),), results, (), **more)
    mark = recorder.mark()
    recorder.lowered(fact)
    if compiled:
        recorder.add(compiled_ns=compiled * MS)
    for start, end in calls:
        record_call(recorder, fact, 1, int(start * MS), int(end * MS))
    code = int(wall_ms * MS), int(ended_ms * MS)
    recording = recorder.freeze(mark, cells=("<cell>",), code=code)
    return dataclasses.replace(recording, compilations=compilations)


def on_two_threads(recording):
    calls = recording.calls.copy()
    calls["thread"][1] = 1
    return dataclasses.replace(recording, calls=calls, threads=("a", "b", "c"))


@pytest.mark.kept
@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (recorded(5.3, (0, 1), (2, 2.5)), "5.3 ms: host functions 1.5 ms, rest 3.8 ms"),
        (
            recorded(5.3, (0, 1), compiled=3),
            "5.3 ms: host functions 1 ms, compilation 3 ms, rest 1.3 ms",
        ),
        (recorded(0, (0, 1)), "host functions 1 ms"),
        # A program that nobody waited for.
        (
            recorded(5, (0, 1), (9, 200), ended_ms=10),
            "host functions 192 ms, also after the code, which took 5 ms",
        ),
        (recorded(1000, (0, 1), (9, 12), ended_ms=10), "1 s: host functions 4 ms, rest 996 ms"),
        # A host function called another one: their sum is no part of the code's time.
        (recorded(5, (0, 4), (1, 3)), "host functions 6 ms"),
        # Another thread compiled.
        (recorded(5, (0, 4), compiled=3), "host functions 4 ms"),
        (
            on_two_threads(recorded(5, (0, 4), (0, 4))),
            "host functions 8 ms summed over 2 threads in 5 ms",
        ),
    ],
)
def test_the_time_of_the_code_is_divided_or_what_is_no_part_of_it_is_told_alone(recording, words):
    sites = summarize(recording)
    assert time_split(recording, sites) == words
    # Every report says the same, as does one that was saved.
    again = Recording.from_json(recording.to_json())
    said = [
        to_text(recording).splitlines()[0],
        to_markdown(recording).splitlines()[0],
        to_html(recording, times=True).partition("</summary>")[0],
        to_text(again).splitlines()[0],
    ]
    assert [line.endswith(f" · {words}") for line in said] == [True] * 4
    _, metadata = to_mimebundle(recording)
    assert metadata[MIME_TYPE].get("time", "") == to_page(recording)["measured"]["time"] == words


@pytest.mark.kept
def test_times_are_not_in_the_data_of_an_output():
    run = recorded(1370, (0, 1), compilations=(COMPILED,))
    data, _ = to_mimebundle(run)
    assert "1.37 s" not in json.dumps(data)


def test_compilation_is_counted_once_and_not_in_a_run_without_any():
    slow = jaxcb.pure(lambda x: x, result="x")
    program = jax.jit(lambda x: jnp.linalg.inv(jnp.eye(5)) + x)
    for _ in range(5):  # each is traced, compiled and run while JAX traces the next one

        @jax.jit
        def program(x, inner=program):
            with jax.ensure_compile_time_eval():
                constant = inner(np.float32(1))
            return slow(x) + constant

    runs = []
    for _ in range(2):
        with jaxcb.record() as r:
            program(np.float32(1)).block_until_ready()
        runs.append(r.recording)
    assert 0 < runs[0].compiled_ns < runs[0].wall_ns
    assert "compilation" in str(runs[0]).splitlines()[0]
    assert runs[1].compiled_ns == 0
    assert "compilation" not in str(runs[1]).splitlines()[0]


def test_compilation_of_a_program_whose_calls_are_unused_is_told():
    with jaxcb.record() as r:
        jax.jit(lambda x: (jaxcb.pure(np.sin, result="x")(x), x)[1])(np.float32(1))
    assert re.search(r" · [^·]*: compilation [^·]*, rest [^·]*$", str(r.recording).splitlines()[0])


NUMBER = (Aval((), "float32"),)
LOGGER = dataclasses.replace(SITE, flavor="debug", function="log")
WAITED = (
    "the program waited 800 ms for it, and needs no result; with queued=True it goes on meanwhile"
)


@pytest.mark.parametrize(
    ("recording", "first"),
    [
        (recorded(1000, (0, 820), results=NUMBER), "⚠ simulate 820 ms (82 %) · pure · 1 call"),
        (
            recorded(1000, (0, 400), (500, 900), site=LOGGER),
            "⚠ log 800 ms (80 %) · queued=True would not wait for it · debug · 2 calls",
        ),
        # Not most of the time, not long, not in it, or on other threads.
        (recorded(1000, (0, 300), results=NUMBER), "simulate · pure · 1 call"),
        (recorded(100, (0, 90), results=NUMBER), "simulate · pure · 1 call"),
        (recorded(1000, (0, 700), site=LOGGER, queued=True), "log · debug · 1 call"),
        (recorded(500, (0, 400), (900, 1000), ended_ms=600), "simulate · pure · 2 calls"),
        (on_two_threads(recorded(900, (0, 400), (0, 400))), "simulate · pure · 2 calls"),
    ],
)
def test_headline_begins_with_the_function_that_took_most_of_the_time(recording, first):
    assert to_text(recording).startswith(first)
    name = first.removeprefix("⚠ ").partition(" ")[0]
    assert to_text(recording, times=False).startswith(f"{name} · ")
    data, metadata = to_mimebundle(recording)
    parts = metadata[MIME_TYPE].get("headline", [])
    assert " · ".join(text for _, text in parts).startswith(first if parts else "")
    assert bool(parts) == ("%" in first)
    assert data[MIME_TYPE]["headline"][0] == ["kept", name]


def test_slow_function_leads_those_that_are_fine_and_follows_an_error():
    slow = recorded(1000, (0, 820), results=NUMBER)
    (site,) = summarize(slow)
    fast = dataclasses.replace(site, site=dataclasses.replace(SITE, function="fast"), share=0.01)
    failed = dataclasses.replace(
        site, site=dataclasses.replace(SITE, function="boom"), share=0, errors=("ValueError: no",)
    )
    parts = headline([fast, failed, site], times=True)
    assert [text.split()[:2] for _, text in parts] == [
        ["✕", "boom"], ["⚠", "simulate"], ["fast", "1"]
    ]  # fmt: skip
    assert [tone for tone, _ in parts] == ["error", "warning", "kept"]


def test_logger_that_takes_most_of_the_time_is_proposed_to_be_queued():
    recording = recorded(1000, (0, 800), site=LOGGER)
    assert WAITED in to_text(recording)
    _, metadata = to_mimebundle(recording)
    (site,) = metadata[MIME_TYPE]["sites"]
    assert site["cost"] == "80 %"
    assert site["proposals"] == [["queued=True", WAITED, []]]
