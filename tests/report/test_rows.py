"""Reports name each bind of the program text, with its callers if several binds are on one line."""

import csv
import io
import json

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import LoweredSite, Site, summarize, to_html, to_text

from ._several import called, data_of, module, recording_of, rows, saved

HELPER = """
    f = lambda x: jaxcb.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), x)

    @jax.jit
    def g(x):
        y = f(x)
        f(x + 1)
        return y
    """
LIBRARY = """
    def solve(x):
        def diverged(x):
            jaxcb.debug_print("DIVERGED {x}", x=x)
            return x

        jaxcb.debug_print("state {x}", x=x)
        return jax.lax.cond(x > 100, diverged, lambda x: x * 0.5, x)
    """
HELPER_ROWS = {
    "line 2 (from g, line 6)": "kept 1",
    "line 2 (from g, line 7)": "unused 0",
}
LIBRARY_ROWS = {  # of a branch that was not entered, too
    "line 1 (via diverged, mylib.py:4)": "not reached 0",
    "line 1 (via solve, mylib.py:7)": "kept 1",
}


@pytest.mark.parametrize(
    ("source", "run", "library", "named"),
    [
        (HELPER, "g(np.float32(1))", "", HELPER_ROWS),
        ("", "jax.jit(lambda x: solve(x))(1.0)", LIBRARY, LIBRARY_ROWS),
    ],
    ids=["helper called on two lines", "library"],
)
def test_every_report_names_each_row(source, run, library, named):
    recording = recording_of(source, run, **module(library, "/usr/lib/site-packages/mylib.py"))
    assert rows(recording) == named
    assert [site["where"] for site in data_of(recording)[0]["sites"]] == list(named)
    text, page = to_text(recording), to_html(recording)
    assert all(where in text and where.replace("line ", "line&nbsp;") in page for where in named)


def test_callbacks_on_one_line_are_told_apart_by_column_and_at_one_column_by_flavor():
    sites = [Site(flavor, "<lambda>", "m.py", 3, column, cell=False, source="c(x)")
             for flavor, column in (("pure", 4), ("io", 4), ("io", 8))]  # fmt: skip
    _, *rows = to_text(called(*(LoweredSite(site, None, 0, (), ()) for site in sites))).splitlines()
    assert [row.split("  ")[1:3] for row in rows] == [
        ["m.py:3:5", "pure <lambda>: c(x)"],
        ["m.py:3:5", "io <lambda>: c(x)"],
        ["m.py:3:9", "c(x)"],
    ]


def test_files_name_each_row(tmp_path):
    recording = recording_of(HELPER, "g(np.float32(1)) + f(np.float32(2))")
    table = csv.DictReader(io.StringIO(saved(recording, tmp_path, ".csv").decode(), newline=""))
    assert [(row["where"], row["callers"]) for row in table] == [
        ("line 2", "g line 6"),
        ("line 2", "<module> line 1"),
    ]
    events = json.loads(saved(recording, tmp_path, ".perfetto.json"))["traceEvents"]
    assert [event["args"]["site"] for event in events if event.get("cat") == "host call"] == [
        "pure, line 2 (from g, line 6)",
        "pure, line 2 (from line 1)",
    ]


def test_explain_and_its_matrix_name_each_row():
    """A column that has only one of two rows names it as the other columns do."""
    x, g = np.float32(1), module(HELPER)["g"]
    assert [site.where for site in summarize(jaxcb.explain(g)(x))] == list(HELPER_ROWS)
    table = str(jaxcb.explain_matrix(g)(x))
    assert all(f"\n{where} " in table for where in HELPER_ROWS)
    assert "line 2 (from g, line 7): nothing uses its result" in table
    names = module(
        """
        f = lambda x: jaxcb.pure_callback(np.sin, x, x)

        def g(x):
            y = f(x) if jnp.ndim(x) == 0 else f(x * 2)
            return y + f(x)
        """
    )
    lines = str(jaxcb.explain_matrix(names["g"])(x)).splitlines()[1:3]
    assert [line.split("  ")[0] for line in lines] == [
        "line 2 (from g, line 5)",
        "line 2 (from g, line 6)",
    ]
