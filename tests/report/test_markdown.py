"""Reports for an issue, as Markdown, and for other programs, as JSON."""

import dataclasses
import html
import json
import re

import mistune
import pytest

from jupyter_jaxcb.recording import (
    Aval,
    Frame,
    LoweredSite,
    Part,
    PartKind,
    Profile,
    Recorder,
    Recording,
    record_call,
)
from jupyter_jaxcb.report import SCHEMA, summarize, to_text
from tests._site_schema import check_site

from ._several import BESSEL, SEVERAL, recording_of, saved

HEAD = ["where", "source", "status", "calls", "shapes of one call", "host time"]
PROGRAM = """\
@jaxcb.pure(result="x")
def lookup(x):
    if x > 2:
        raise KeyError("no | entry")
    return 2 * x
def f(x):
    lookup(x)
    return lookup(x)
def run():
    jax.jit(jax.vmap(f))(np.arange(3.0)).block_until_ready()
    try:
        jax.jit(lookup)(np.float32(4)).block_until_ready()
    except (ValueError, jax.errors.JaxRuntimeError):
        pass"""


def rendered(recording, tmp_path):
    """Return the cells of the table, and the text of the list below it, as a reader sees them."""
    lines = saved(recording, tmp_path, ".md").decode().splitlines()
    head, rule, *rows = (line[2:-2] for line in lines if line.startswith("| "))
    assert rule == " | ".join(["---"] * len(HEAD))
    # GitHub splits a row at the bars without a backslash, before it looks for code in the cells.
    cells = [
        [cell.replace(r"\|", "|") for cell in re.split(r" (?<!\\)\| ", row)]
        for row in (head, *rows)
    ]
    return [list(map(words, row)) for row in cells], [
        words(line[2:]) for line in lines if line.startswith("* ")
    ]


def words(markdown):
    """Return the text that a browser shows."""
    page = mistune.create_markdown(escape=False)(markdown)
    return html.unescape(re.sub("<[^>]*>", "", page)).rstrip("\n")


def test_markdown_has_a_row_for_each_call_site_and_its_reason_advice_and_error(tmp_path):
    recording = recording_of(PROGRAM, "run()")
    (head, unused, kept, raised), remarks = rendered(recording, tmp_path)
    assert head == HEAD
    assert unused == ["line 7", "lookup", "unused", "0 calls", "", ""]
    assert kept[:5] == [
        "line 8",
        "lookup",
        "",
        "3 calls",
        "() → () vmap 3, sequential",
    ]
    assert raised[2:5] == ["raised", "1 call", "() → ()"]
    assert all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", row[5]) for row in (kept, raised))
    first, last = remarks
    assert "line 7: 1 elided: nothing uses its result" in first
    assert "return or use the result" in first
    assert last.endswith("KeyError: 'no | entry'")


def test_markdown_ends_with_the_versions(tmp_path):
    for recording in (SEVERAL, dataclasses.replace(Recording(), environment=SEVERAL.environment)):
        text = saved(recording, tmp_path, ".md").decode()
        assert text.endswith("\n\njax 0.0, backend cpu\n")


@pytest.mark.parametrize(
    "text",
    ["a | b", "a`b``c", "`a`", r"a\|b", "<b>*a* [b](c)", "a\\", "__a__ # b", "two\n| --- |\nlines"],
)
def test_nothing_in_a_program_is_markup(text, tmp_path):
    site = dataclasses.replace(BESSEL, function=text, source=text, file=f"/x/{text}", cell=False)
    recorder = Recorder(clock=lambda: 0)
    fact = LoweredSite(site, None, -1, (Aval((2,), "float32"),), ())
    record_call(recorder, fact, 1, 5, 9, f"ValueError: {text}")
    recording = recorder.freeze()
    (_, row), remarks = rendered(recording, tmp_path)
    line = " ".join(text.split()).replace(r"\|", r"\ |")  # the cell would end in some viewers
    assert row[1:] == [line, "raised", "1 call", "(2,) → nothing", "4 ns"]
    assert remarks[-1].endswith(f"ValueError: {text.splitlines()[0].strip()}")
    assert row[0] == " ".join(summarize(recording)[0].where.split())


PLACE = Frame("", "a|b.py", 3)
PROFILE = Profile(
    start_ns=0,
    wall_ns=1000,
    parts=(
        Part(PartKind.HOST, "look_up", PLACE, 800, 800, 900, -1),
        Part(PartKind.XLA, "a | `b`", PLACE, 195, 195, 2, -1),
        Part(PartKind.IDLE, "", None, 5, 5, 0, -1),
    ),
    lanes=(),
    compilations=(),
    event_ns=1,
    events=300,
    reading_ns=10**6,
)


def test_markdown_of_a_profile_has_its_bar_as_a_table_and_its_sentences(tmp_path):
    recording = dataclasses.replace(SEVERAL, profile=PROFILE)
    text = saved(recording, tmp_path, ".md").decode()
    first, table, below, *sites = text.split("\n\n")
    head, rule, *rows = table.splitlines()
    assert first == "1 µs: 80 % host functions, 20 % XLA"
    cells = [
        [words(cell.replace(r"\|", "|")) for cell in re.split(r" (?<!\\)\| ", line[2:-2])]
        for line in (head, *rows)
    ]
    assert rule == "| --- | --- | --- | --- | --- |"
    assert cells == [
        ["part", "where", "time", "share", "count"],
        ["host functions", "", "800 ns", "80 %", ""],
        ["look_up", "a|b.py:3", "800 ns", "80 %", "900 calls"],
        ["XLA", "", "195 ns", "20 %", ""],
        ["a | `b`", "a|b.py:3", "195 ns", "20 %", "2 runs"],
        ["idle", "", "5 ns", "0.5 %", ""],
    ]
    sentences = [words(line[2:]) for line in below.splitlines()]
    assert sentences
    assert set(sentences) <= set(to_text(recording).splitlines())
    assert "\n\n".join(sites) == saved(SEVERAL, tmp_path, ".md").decode()


def test_json_of_call_sites_is_what_front_ends_get_without_sample_values(tmp_path):
    recording = recording_of(PROGRAM, "run()")
    assert recording.sample_values
    data = json.loads(saved(recording, tmp_path, ".sites.json"))
    assert data["schema"] == SCHEMA
    assert data["environment"] == dict(recording.environment)
    for site in data["sites"]:
        check_site(site)
        assert site["sample_values"] == []
    assert [(one["status"], one["calls"], one["host_ns"]) for one in data["sites"]] == [
        (str(one.status), one.calls, one.host_ns) for one in summarize(recording)
    ]
    assert data["sites"][2]["errors"] == ["KeyError: 'no | entry'"]
