"""What was seen, as files."""

import csv
import json
import math
import sys
import types

import jax
import numpy as np
import pytest
from pyarrow import parquet

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.watch._save import WRITERS


def half(x, by):
    y = x / by
    return y, y


@pytest.fixture(scope="module")
def seen():
    """Watch a loop whose `y` is 2, 1, NaN, and the norm of it."""
    with jaxcb.watching("y", norm=lambda y: y.max()) as seen:
        jax.lax.scan(half, np.float32([4.0, 4.0]), np.float32([2, 2, np.nan]))
    return seen


@pytest.fixture(scope="module")
def nothing():
    with jaxcb.watching() as seen:
        pass
    return seen


@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_can_be_written_with_and_without_values(seen, nothing, tmp_path, ending):
    for number, one in enumerate((seen, nothing)):
        path = tmp_path / f"values{number}{ending.upper()}"
        one.save(path)
        assert path.stat().st_size > 0


def test_csv_and_parquet_have_the_fields_of_the_rows(seen, tmp_path):
    seen.save(tmp_path / "values.csv")
    with (tmp_path / "values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["expression"], row["steps"], row["mean"]) for row in rows] == [
        ("y", "(0,)", "2.0"),
        ("y", "(1,)", "1.0"),
        ("y", "(2,)", "nan"),
    ]
    seen.save(tmp_path / "values.parquet")
    rows = parquet.read_table(tmp_path / "values.parquet").to_pylist()
    assert [(row["steps"], row["shape"], row["nan"]) for row in rows] == [
        ([0], [2], 0),
        ([1], [2], 0),
        ([2], [2], 2),
    ]
    means, norms = [row["mean"] for row in rows], [row["own.norm"] for row in rows]
    np.testing.assert_equal((means, norms), ([2, 1, math.nan], [2, 1, math.nan]))


def test_parquet_without_pyarrow_says_what_to_install(seen, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"Run `pip install pyarrow`, or save a \.csv"):
        seen.save(tmp_path / "values.parquet")


def test_perfetto_has_a_counter_for_each_variable_and_an_event_where_it_is_bad(seen, tmp_path):
    seen.save(tmp_path / "values.json")

    def refused(word):
        raise AssertionError(f"{word} is not JSON")

    text = (tmp_path / "values.json").read_text()
    named, *counted, bad = json.loads(text, parse_constant=refused)["traceEvents"]
    assert (named["ph"], named["args"]) == ("M", {"name": "values"})
    name = f"y (half, line {half.__code__.co_firstlineno + 1})"
    assert [(e["ph"], e["name"], e["args"]) for e in counted] == [
        ("C", name, {"mean": 2.0}),
        ("C", name, {"mean": 1.0}),
    ]
    assert (bad["ph"], bad["name"], bad["args"]) == ("i", f"bad: {name}", {"NaN": 2, "inf": 0})
    times = [e["ts"] for e in (*counted, bad)]
    assert times[0] == 0
    assert times == sorted(times)


def test_page_stands_alone(seen, tmp_path):
    seen.save(tmp_path / "values.html")
    text = (tmp_path / "values.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "gave NaN in step 2" in text
    assert not [word for word in ("<script", "src=", "href=", "@import", "url(") if word in text]


def test_unknown_ending_is_refused_with_those_that_are_known(seen, tmp_path):
    words = r"values\.xlsx'\. End its name in \.csv, \.parquet, \.json or \.html\."
    with pytest.raises(ValueError, match=words):
        seen.save(tmp_path / "values.xlsx")
    assert not list(tmp_path.iterdir())


def test_csv_and_parquet_have_a_column_for_each_own_number(seen, tmp_path):
    seen.save(tmp_path / "values.csv")
    with (tmp_path / "values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert "own" not in rows[0]
    assert [row["own.norm"] for row in rows] == ["2.0", "1.0", "nan"]
    seen.save(tmp_path / "values.parquet")
    names = parquet.read_schema(tmp_path / "values.parquet").names
    assert [*rows[0]] == names


def test_rows_of_cotangents_have_the_variable():
    def f(x):
        z = -jax.numpy.cos(x)
        return z * 2

    with jaxcb.watching("z") as seen:
        jax.grad(f)(1.0)
    named = [(row.direction, row.expression) for row in seen.rows]
    assert named == [("forward", "z"), ("backward", "z")]


def test_text_that_a_spreadsheet_reads_as_a_formula_has_an_apostrophe_in_csv(seen, tmp_path):
    texts = ["=1", "+1", "-1", "@a", "a"]
    rows = [seen.rows[0]._replace(source=text) for text in texts]
    WRITERS[".csv"](types.SimpleNamespace(rows=rows), str(tmp_path / "values.csv"))
    with (tmp_path / "values.csv").open(newline="") as file:
        written = [row["source"] for row in csv.DictReader(file)]
    assert written == ["'=1", "'+1", "'-1", "'@a", "a"]
