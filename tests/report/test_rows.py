"""Reports name each bind of the program text, with its callers if several binds are on one line."""

import csv
import io
import json

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Frame, Site
from jupyter_jaxcb.report import Rows, summarize, to_html, to_mimebundle, to_text

from ._several import library, module, recording_of, rows, saved

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
X = np.float32(1)


def helper():
    return recording_of(HELPER, "g(np.float32(1))")


def solved():
    return recording_of("", "jax.jit(lambda x: solve(x))(1.0)", **library(LIBRARY))


HELPER_ROWS = {
    "line 2 (from g, line 6)": "kept 1",
    "line 2 (from g, line 7)": "unused 0",
}
LIBRARY_ROWS = {
    "line 1 (via diverged, mylib.py:4)": "not reached 0",
    "line 1 (via solve, mylib.py:7)": "kept 1",
}


def test_helper_called_on_two_lines_has_two_rows():
    assert rows(helper()) == HELPER_ROWS


def test_branch_of_a_library_that_was_not_entered_has_a_row(capsys):
    assert rows(solved()) == LIBRARY_ROWS
    assert capsys.readouterr().out == "state 1.0\n"


def test_every_report_names_each_row():
    for recording, named in ((helper(), HELPER_ROWS), (solved(), LIBRARY_ROWS)):
        text, page = to_text(recording), to_html(recording)
        data, _ = to_mimebundle(recording)
        (facts,) = (value for key, value in data.items() if key.endswith("+json"))
        assert [site["where"] for site in facts["sites"]] == list(named)
        for where in named:
            assert where in text
            assert where in data["text/plain"]
            assert where.replace("line ", "line&nbsp;") in page


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


def test_pandas_and_arrow_tables_have_the_callers(tmp_path):
    pytest.importorskip("pandas")
    recording = helper()
    assert list(recording.to_pandas()["callers"]) == ["g line 6"]
    parquet = pytest.importorskip("pyarrow.parquet")
    recording.save(tmp_path / "calls.parquet")
    assert parquet.read_table(tmp_path / "calls.parquet")["callers"].to_pylist() == ["g line 6"]


def test_files_keep_rows_apart(tmp_path):
    for suffix in (".json", ".jaxcb"):
        helper().save(tmp_path / f"run{suffix}")
        assert rows(jaxcb.load(tmp_path / f"run{suffix}")) == HELPER_ROWS


def test_explain_and_its_matrix_name_each_row():
    g = module(HELPER)["g"]
    ahead = jaxcb.explain(g)(X)
    assert [site.where for site in summarize(ahead)] == list(HELPER_ROWS)
    table = str(jaxcb.explain_matrix(g)(X))
    for where in HELPER_ROWS:
        assert f"\n{where} " in table
    assert "line 2 (from g, line 7): nothing uses its result" in table


def test_matrix_has_the_rows_of_all_its_columns():
    """A column that has only one of the two rows names it as the other columns do."""
    names = module(
        """
        f = lambda x: jaxcb.pure_callback(np.sin, x, x)

        def g(x):
            y = f(x) if jnp.ndim(x) == 0 else f(x * 2)
            return y + f(x)
        """
    )
    lines = str(jaxcb.explain_matrix(names["g"])(X)).splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == [
        "line 2 (from g, line 5)",
        "line 2 (from g, line 6)",
    ]


def test_rule_that_jax_calls_later_under_a_transformation_is_one_row_of_a_matrix():
    """Inside `jax.checkpoint`, JAX calls a rule after the function has returned."""
    names = module(
        """
        f = jaxcb.pure(lambda x: x, result="x")
        slope = jaxcb.pure(lambda x: x, result="x")

        @f.defjvp
        def rule(primals, tangents):
            return f(*primals), slope(*primals) * tangents[0]

        def load(x):
            return 2 * f(x)
        """
    )
    table = str(jaxcb.explain_matrix(names["load"])(X)).splitlines()
    (row,) = (line for line in table if line.startswith("line 7:25"))
    assert row.split("  ")[0] == "line 7:25"
    assert row.count("1 call") == 2  # grad and remat


def test_callers_in_another_cell_are_marked():
    site = Site("pure", "f", "/cell-1", 3, 0, cell=True)
    sites = [
        Site("pure", "f", "/cell-1", 3, 0, True, "", (Frame("<module>", file, 6, 0, True),))
        for file in ("/cell-1", "/cell-2")
    ]
    assert [Rows(sites).where(site) for site in sites] == [
        "line 3 (from line 6)",
        "line 3 (from line 6, another cell)",
    ]
    assert Rows([site]).where(site) == "line 3"


def test_long_names_of_callers_are_cut():
    sites = [
        Site("pure", "f", "a.py", 3, 0, False, "", (Frame("g" * 500, "b.py", line),))
        for line in (1, 2)
    ]
    assert all(len(Rows(sites).where(site)) < 200 for site in sites)


def test_naming_many_rows_of_one_helper_takes_linear_time():
    """Each frame is visited once."""
    visited = []

    def where(place):
        visited.append(place)
        return place.where

    sites = [
        Site("pure", "f", "a.py", 3, 0, False, "", (Frame("g", "b.py", line),))
        for line in range(2_000)
    ]
    names = Rows(sites, where)
    assert len(visited) == len(sites)
    assert len({names.where(site) for site in sites}) == len(sites)
