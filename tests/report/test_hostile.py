"""Recordings whose every string is hostile: reports show it as text, and obey nothing in it.

Strings of a recording come from files and from other people's programs. Each test compares reports
of a hostile recording with those of a harmless one, whose strings are as long and as distinct.
"""

import csv
import io
import json
import re
from html.parser import HTMLParser

import mistune
import pytest
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html_mistune

from tests.interface import (
    Check,
    Checks,
    Finding,
    Matrix,
    RecordingFileError,
    check_output,
    matrix_output,
    matrix_to_text,
)

from ._everything import WHOLE, brief_reports, read, reports

pytestmark = pytest.mark.kept

MARKUP = (
    "=\"'></code></script></style>--><img src=x onerror=alert(1)><svg/onload=alert(2)>&lt;b&gt;"
)
STRINGS = {
    "html": MARKUP,
    "formula": "=1+1",
    "markdown": "@me `a` ``b <i>x</i> [a](data:x) ![i](data:,) \\| <b>c</b>| http://e.x www.x.y",
    "more markdown": "+ x\n\n# a\n\n| b |\n| --- |\n| <u>c</u> |\n```\n$x$ &amp; **d** ~~e~~ a@x.y",
    "terminal": "\x1b[2J\x1b]0;t\x07\x9b31m\r\u202e\u2066\u200b\ufeff\ud800\U000e0041\x00\x7f",
    "lines": "a\n\nb\tc\u2028d",
}
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def places(data, path=()):
    """Yield the path of each string in parsed JSON; that of a key ends in ``(key,)``."""
    if isinstance(data, str):
        yield path
    elif isinstance(data, list):
        for number, one in enumerate(data):
            yield from places(one, (*path, number))
    elif isinstance(data, dict):
        for name, one in data.items():
            if path == ("environment",):
                yield (*path, (name,))
            yield from places(one, (*path, name))


def put(data, path, text):
    """Replace the string at `path`."""
    *way, last = path
    for step in way:
        data = data[step]
    if isinstance(last, tuple):
        data[text] = data.pop(last[0])
    else:
        data[last] = text


def readable(path):
    """Return whether a file can have any string at `path`."""
    data = json.loads(WHOLE)
    put(data, path, "anything")
    try:
        read(data)
    except RecordingFileError:
        return False
    return True


PLACES = [path for path in places(json.loads(WHOLE)) if readable(path)]
KINDS = {tuple("" if type(step) is int else step for step in path): path for path in PLACES}


def changed(text, paths):
    """Return a recording with `text`, and a number, at these places."""
    data = json.loads(WHOLE)
    for number, path in sorted(enumerate(paths), key=lambda one: str(one[1][-1]), reverse=True):
        put(data, path, f"{text}{number:03d}")
    return read(data)


class Elements(HTMLParser):
    """The elements of HTML, with the names of their attributes, and those values that run."""

    def __init__(self, content):
        super().__init__()
        self.found, self.scripts, self._in = [], [], ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        own = [name for name, _ in attrs if name != "title"]  # a long line has its whole as a title
        runs = [one for one in attrs if one[0] in ("href", "src", "style", "class", "id", "role")]
        self.found.append((tag, own, runs))
        self._in = tag

    def handle_comment(self, data):
        self.found.append(("comment", [], []))

    def handle_data(self, data):
        if self._in in ("script", "style"):
            self.scripts.append(data)


def elements(html):
    return Elements(html).found


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def without_our_script(page):
    """Return a page without its last script, which is ours and long."""
    return page.rpartition("\n<script>")[0]


def check(hostile, harmless):
    """Compare the reports of two recordings."""
    assert elements(hostile["text/html"]) == elements(harmless["text/html"])
    for render in (mistune.html, markdown2html_mistune):
        assert elements(render(hostile[".md"])) == elements(render(harmless[".md"]))
    for name in {".txt", ".md", "text/plain", "text/html", "repr", "cost", "outcomes"} & {*hostile}:
        assert not HIDDEN.search(hostile[name]), name
        if name != "text/html":
            assert hostile[name].count("\n") == harmless[name].count("\n"), name
    rows = cells(hostile[".csv"])
    assert [len(row) for row in rows] == [len(row) for row in cells(harmless[".csv"])]
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(tuple("=+@\t\r-")) or re.fullmatch(r"-\d+", cell)
    for name in (".perfetto.json", "view"):
        json.loads(hostile[name])


@pytest.mark.parametrize("text", STRINGS.values(), ids=STRINGS)
def test_recording_of_hostile_strings_is_shown_as_text(text):
    harmless = "x" * len(text)
    hostile, harmless = (reports(changed(one, PLACES)) for one in (text, harmless))
    check(hostile, harmless)
    pages = [without_our_script(one[".html"]) for one in (hostile, harmless)]
    assert elements(pages[0]) == elements(pages[1])
    assert not HIDDEN.search(re.sub(r"<(script|style).*?</\1>", "", pages[0]))


@pytest.mark.long
@pytest.mark.parametrize("path", KINDS.values(), ids=map(str, KINDS))
def test_each_string_is_shown_as_text(path):
    text = f"{MARKUP}{STRINGS['markdown']}\n{STRINGS['terminal']}"
    check(*(brief_reports(changed(one, [path])) for one in (text, "x" * len(text))))


def test_notebook_with_a_hostile_output_is_converted_to_the_elements_of_a_harmless_one():
    found = []
    for text in ("".join(STRINGS.values()), "x" * len("".join(STRINGS.values()))):
        made = reports(changed(text, PLACES))
        data = {"text/html": made["text/html"], "text/plain": made["text/plain"]}
        outputs = [
            {"output_type": "display_data", "data": one, "metadata": {}}
            for one in (data, {"text/markdown": made[".md"]}, {"text/plain": made["text/plain"]})
        ]
        cell = {"cell_type": "code", "id": "a", "source": "f(x)", "outputs": outputs,
                "metadata": {}, "execution_count": 1}  # fmt: skip
        notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        file = io.StringIO(json.dumps(notebook))
        found.append(HTMLExporter(sanitize_html=False).from_file(file)[0])
    hostile, harmless = map(Elements, found)
    assert hostile.found == harmless.found
    assert hostile.scripts == harmless.scripts


@pytest.mark.parametrize("text", STRINGS.values(), ids=STRINGS)
def test_checks_and_matrices_are_shown_as_text(text):
    found = []
    for one in (text, "x" * len(text)):
        finding = Finding(one, one, one)
        result = Check(one, one, (finding,), (one,), {one: one}, {one: True})
        results = Checks(one, (result,), {one: one})
        recording = changed(one, PLACES)
        matrix = Matrix((one, "grad"), {one: recording}, {"grad": one})
        html = [check_output(results).html, results._repr_html_(), matrix_output(matrix).html]
        texts = [repr(results), repr(result), repr(matrix)]
        assert not any(map(HIDDEN.search, (*texts, matrix_to_text(matrix), *html)))
        found.append(elements("".join(html)))
    assert found[0] == found[1]
