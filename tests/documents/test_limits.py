"""Limits that are constants of the code are the same on every page that names them."""

import importlib
import re
from pathlib import Path

import pytest

import jupyter_jaxcb

ROOT = Path(__file__).parents[2]
NUMBER = r"(\d[\d,.]*\d|\d)"
UNITS = {"2**20": 2**20, "2**30": 2**30, "1e6": 1e6, "1/2": 1 / 2, "0.001": 0.001}
WORDS = {
    "first three": "first 3",
    "at least eight": "at least 8",
    "at most eight": "at most 8",
    "last eight": "last 8",
}


# The constant, divided by the unit of the text, and the sentences that have its number at "#".
LIMITS = {
    "view/data/parse/parse.ts:MOST_SITES": [
        "limits: lists the first # call sites",
    ],
    "view/sites/sites.ts:AT_ONCE": [
        "limits: call sites, # at a time",
    ],
    "view/data/parse/parse.ts:MOST_VALUES": [
        "limits: hold more than # values",
    ],
    "view/sites/details.ts:MOST_SHOWN": [
        "limits: the first # notes and errors",
    ],
    "notebook.display._history:MOST_RUNS": [
        "read-the-host-trace: total times of the last # runs of each cell",
    ],
    "view/compare/history.ts:MOST_RUNS": [
        "read-the-host-trace: times of the last # runs of each cell",
    ],
    "view/compare/history.ts:CHANGE": [
        "read-the-host-trace: more than # times the median",
    ],
    "view/compare/history.ts:LEAST_NS / 1e6": [
        "read-the-host-trace: Differences below # ms",
    ],
    "stack.dispatch._finite:LARGEST": [
        "limits: Results of more than # elements are searched",
    ],
    "recording.recorder._sample_values:MARKED": [
        "limits: The first # calls of a recording that returned NaN",
    ],
    "recording.recorder._array_values:LARGEST": [
        "limits: of more than # elements, have no picture",
    ],
    "report.frontend._mime:_SAVED_RUNS": [
        "limits: a notebook keeps at most # runs of them",
    ],
    "report.frontend._mime:MAX_SAVED_CALLS": [
        "limits: A notebook saves # calls",
        "read-the-host-trace: has at most # calls",
        "read-the-host-trace: the first # calls of a cell",
        "save-and-export: without its kernel has at most #,",
    ],
    "report.frontend._mime:MAX_PAGE_CALLS": [
        "limits: outputs with more than # calls",
    ],
    "view/data/unpack.ts:MOST_ROWS": [
        "limits: outputs with more than # calls",
    ],
    "notebook.display._panel:MAX_SITES": [
        "limits: The side panel has the last # call sites",
    ],
    "notebook.errors._error_display:LONGEST": [
        "limits: keeps the first # characters of a message",
    ],
    "stack.errors._error_text:LONGEST": [
        "limits: XLA and recordings get #",
    ],
    "stack.trace._site:MAX_CALLERS": [
        "limits: at most # frames of your code",
    ],
    "stack.trace._site:MAX_CALLERS / 1/2": [
        "limits: of your code and # of libraries",
    ],
    "notebook.session._cell_barrier:DEFAULT_SECONDS": [
        "limits: after # seconds with a list",
        "troubleshoot-hangs: a cell waits up to # seconds",
    ],
    "notebook.session._hangs:DEFAULT_SECONDS": [
        "troubleshoot-hangs: If no host call has returned for # seconds",
        "troubleshoot-hangs: changes the # seconds; `off`",
    ],
    "notebook.session._left_recording:_MOST": [
        "troubleshoot-hangs: files of the last # such cells",
    ],
    "capabilities.executors._stuck:GRACE_SECONDS": [
        "troubleshoot-hangs: it is killed # seconds later",
        "parallel-callbacks: is killed # seconds later",
    ],
    "recording.recorder._sample_values:SAMPLES": [
        "read-the-host-trace: The first # host calls of each line",
        "save-and-export: from the first # host calls of each line",
        "faq: from the first # calls of each line",
    ],
    "recording.files._save:LIMIT_BYTES / 2**30": [
        "save-and-export: more memory than # GiB",
    ],
    "diagnostics.gather._gather:_SECONDS": [
        "several-processes: within `timeout=` seconds (#)",
        "troubleshoot-hangs: after `timeout=` seconds (#)",
    ],
    "capabilities.queued._queue:LIMIT_BYTES / 2**20": [
        "queued-callbacks: The queue holds # MiB",
    ],
    "capabilities.queued._crossing:_ARRAY_BYTES": [
        "queued-callbacks: its arrays plus # bytes for each",
    ],
    "diagnostics.profile._sampler:INTERVAL_SECONDS / 0.001": [
        "profile: sampled every # ms",
    ],
    "diagnostics.profile._session:_GROWTH_BYTES / 1e6": [
        "profile: has grown by # MB",
    ],
    "stack.errors._store:KEPT": [
        "debug-errors: the last # failures of each thread",
        "debug-errors: only until # more host functions",
    ],
    "diagnostics.check._rows:_FEW": [
        "check-and-test: if there are at most #;",
    ],
    "diagnostics.notes._received:_MOST_STEPS": [
        "watch-values: Of a loop with more than # steps, about",
    ],
    "diagnostics.notes._variables:MOST_ARRAYS": [
        "watch-values: a variable with more than # arrays",
    ],
    "diagnostics.notes._reductions:MOST_ELEMENTS": [
        "watch-values: a batch of up to # elements",
    ],
    "diagnostics.notes._reductions:_MOST_VALUES": [
        "watch-values: each value of an array of up to #,",
    ],
    "report.summary._batch:_FEW": [
        "read-the-host-trace: If a `vmap` makes at least # calls",
    ],
}
ROWS = [(constant, sentence) for constant, sentences in LIMITS.items() for sentence in sentences]


def value(constant):
    """Return what `constant` names in a module of the package or of the front end."""
    constant, _, unit = constant.partition(" / ")
    place, _, name = constant.partition(":")
    if place.endswith(".ts"):
        text = (ROOT / "labextension/src" / place).read_text(encoding="utf-8")
        (number,) = re.findall(rf"const {name} = ([\d_.]+)", text)
        return float(number) / UNITS.get(unit, 1)
    found = getattr(importlib.import_module(f"jupyter_jaxcb.{place}"), name)
    return found / UNITS[unit] if unit else found


@pytest.fixture(scope="module")
def prose(pages):
    """The text of each page in one line, with digits for the words that name a limit."""
    found = {}
    for path, text in pages.items():
        text = " ".join(text.split())
        for words, digits in WORDS.items():
            text = text.replace(words, digits)
        found[Path(path).stem] = text
    return found


@pytest.mark.parametrize(("constant", "sentence"), ROWS, ids=[row[1] for row in ROWS])
def test_limit_on_a_page_is_that_of_the_code(constant, sentence, prose):
    page, _, words = sentence.partition(": ")
    (number,) = re.findall(re.escape(words).replace(r"\#", NUMBER), prose[page])
    assert float(number.replace(",", "")) == pytest.approx(value(constant))


def test_each_page_names_the_same_number_of_events_after_which_a_profile_stops(prose):
    text = "".join(prose.values()) + jupyter_jaxcb.profile.__doc__
    pattern = rf"about {NUMBER} events"
    numbers = re.findall(pattern, text)
    assert len(numbers) >= 2
    assert len(set(numbers)) == 1
