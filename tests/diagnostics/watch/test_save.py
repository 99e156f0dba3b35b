"""What was seen, as files."""

import csv
import json

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


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


@pytest.mark.parametrize("ending", [".csv", ".json", ".html"])
def test_every_format_can_be_written_with_and_without_values(seen, nothing, tmp_path, ending):
    for number, one in enumerate((seen, nothing)):
        path = tmp_path / f"values{number}{ending.upper()}"
        one.save(path)
        assert path.stat().st_size > 0


def test_csv_has_the_fields_of_the_rows(seen, tmp_path):
    seen.save(tmp_path / "values.csv")
    with (tmp_path / "values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["expression"], row["steps"], row["mean"]) for row in rows] == [
        ("y", "(0,)", "2.0"),
        ("y", "(1,)", "1.0"),
        ("y", "(2,)", "nan"),
    ]
    assert [(row["shape"], row["nan"]) for row in rows] == [("(2,)", n) for n in "002"]


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
    words = r"values\.xlsx'\. End its name in \.csv, \.json or \.html\."
    with pytest.raises(ValueError, match=words):
        seen.save(tmp_path / "values.xlsx")
    assert not list(tmp_path.iterdir())
