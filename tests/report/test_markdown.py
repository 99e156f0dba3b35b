"""Reports for an issue, as Markdown: what a reader sees, and nothing else is markup."""

import dataclasses
import html
import re

import mistune
import pytest

from tests.interface import (
    Frame,
    LoweredSite,
    Part,
    PartKind,
    Profile,
    summarize,
    to_text,
)

from ._several import BESSEL, SEVERAL, called, f32, recording_of, saved

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


def words(markdown):
    """Return the text that a browser shows."""
    page = mistune.create_markdown(escape=False)(markdown)
    return html.unescape(re.sub("<[^>]*>", "", page)).rstrip("\n")


def rendered(text):
    """Return the cells of each table, and the text of the lists, as a reader sees them."""
    tables = [
        # GitHub splits a row at the bars without a backslash, before it looks for code in cells.
        [[words(cell.replace(r"\|", "|")) for cell in re.split(r" (?<!\\)\| ", line[2:-2])]
         for line in part.splitlines()]
        for part in text.split("\n\n") if part.startswith("| ")
    ]  # fmt: skip
    for table in tables:
        assert {*table.pop(1)} == {""}  # mistune shows the rule as a line
    return tables, [words(line[2:]) for line in text.splitlines() if line.startswith("* ")]


def markdown(recording, tmp_path):
    return saved(recording, tmp_path, ".md").decode()


def test_markdown_has_a_row_for_each_call_site_and_its_reason_advice_and_error(tmp_path):
    ((head, *rows),), remarks = rendered(markdown(recording_of(PROGRAM, "run()"), tmp_path))
    assert head == ["where", "source", "status", "calls", "shapes of one call", "host time"]
    assert [row[:5] for row in rows] == [
        ["line 7", "lookup", "unused", "0 calls", ""],
        ["line 8", "lookup", "", "3 calls", "() → () vmap 3, sequential"],
        ["line 12", "lookup", "raised", "1 call", "() → ()"],
    ]
    times = [row[5] for row in rows]
    assert not times[0] and all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", one) for one in times[1:])
    assert "line 7: 1 elided: nothing uses its result" in remarks[0]
    assert "return or use the result" in remarks[0]
    assert remarks[-1].endswith("KeyError: 'no | entry'")


@pytest.mark.parametrize(
    "text",
    ["a | b", "a`b``c", "`a`", r"a\|b", "<b>*a* [b](c)", "a\\", "__a__ # b", "two\n| --- |\nlines"],
)
def test_nothing_in_a_program_is_markup(text, tmp_path):
    site = dataclasses.replace(BESSEL, function=text, source=text, file=f"/x/{text}", cell=False)
    recording = called(LoweredSite(site, None, -1, (f32(2),), ()), error=f"ValueError: {text}")
    ((_, row),), remarks = rendered(markdown(recording, tmp_path))
    line = " ".join(text.split()).replace(r"\|", r"\ |")  # the cell would end in some viewers
    assert row[1:] == [line, "raised", "1 call", "(2,) → nothing", "1 ns"]
    assert remarks[-1].endswith(f"ValueError: {text.splitlines()[0].strip()}")
    assert row[0] == " ".join(summarize(recording)[0].where.split())


def test_markdown_of_a_profile_has_its_bar_as_a_table_and_its_sentences(tmp_path):
    place = Frame("", "a|b.py", 3)
    parts = (
        Part(PartKind.HOST, "look_up", place, 800, 800, 900, -1),
        Part(PartKind.XLA, "a | `b`", place, 195, 195, 2, -1),
        Part(PartKind.IDLE, "", None, 5, 5, 0, -1),
    )
    profile = Profile(0, 1000, parts, (), (), event_ns=1, events=300, reading_ns=10**6)
    recording = dataclasses.replace(SEVERAL, profile=profile)
    text, of_sites = markdown(recording, tmp_path), markdown(SEVERAL, tmp_path)
    assert text.startswith("1 µs: 80 % host functions, 20 % XLA\n\n")
    assert text.endswith(f"\n\n{of_sites}")
    (table,), sentences = rendered(text.removesuffix(of_sites))
    assert table == [
        ["part", "where", "time", "share", "count"],
        ["host functions", "", "800 ns", "80 %", ""],
        ["look_up", "a|b.py:3", "800 ns", "80 %", "900 calls"],
        ["XLA", "", "195 ns", "20 %", ""],
        ["a | `b`", "a|b.py:3", "195 ns", "20 %", "2 runs"],
        ["idle", "", "5 ns", "0.5 %", ""],
    ]
    assert sentences and set(sentences) <= set(to_text(recording).splitlines())
