"""Reports for an issue, as Markdown, and for other programs, as JSON."""

import dataclasses
import html
import json
import re

import mistune
import pytest

from jupyter_jaxcb.recording import Aval, LoweredSite, Recorder, Recording, record_call
from jupyter_jaxcb.report import SCHEMA, summarize
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
    line = " ".join(text.split())
    assert row[1:] == [line, "raised", "1 call", "(2,) → nothing", "4 ns"]
    assert remarks[-1].endswith(f"ValueError: {text.splitlines()[0].strip()}")
    assert row[0] == " ".join(summarize(recording)[0].where.split())


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
