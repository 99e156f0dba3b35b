"""The values beside the lines of the notebook's cells."""

from types import SimpleNamespace

import numpy as np
import pytest

from jupyter_jaxcb.diagnostics import Series
from jupyter_jaxcb.diagnostics.notes import Totals
from jupyter_jaxcb.stack import ResultError
from tests.interface import line_values

LineValues, Origins = line_values()


def variable(file, line=1, name="y", values=(0.5, 0.25)):
    column = np.array(values)[:, None]
    none = np.zeros_like(column, dtype=int)
    known = [value for value in values if np.isfinite(value)]
    return Series(
        file, line, "f", "y = g(x)", name, "forward", (), "float32", (), 1, len(values),
        np.arange(len(values))[:, None], column, column, column, none, none, {},
        np.zeros((len(values), 1, 0)),
        Totals(min(known, default=np.inf), max(known, default=-np.inf)),
    )  # fmt: skip


def cells(**sources):
    """Return the origins after cells ran whose file names are their sources."""
    compiler = SimpleNamespace(get_code_name=lambda raw, *_: raw.strip())
    origins = Origins(SimpleNamespace(compile=compiler))
    for cell, source in sources.items():
        origins.begin(SimpleNamespace(cell_id=cell, raw_cell=source))
    return origins


def texts(values):
    return [(one["cell"], one["line"], one["text"]) for one in values.to_json()]


def test_line_counts_from_the_top_of_the_cell():
    values = LineValues(cells(one="\n\nfirst"))
    values.add([(variable("first"), "")])
    assert texts(values) == [("one", 3, "y 0.5 → 0.25")]


def test_line_of_a_cell_that_raised_has_the_exception_until_the_calling_cell_runs_again():
    origins = cells(one="def host(x):\n    return 1 / x")
    values, names = LineValues(origins), {}
    exec(compile("def host(x):\n    return 1 / x", *origins.cells, "exec"), names)
    origins.begin(SimpleNamespace(cell_id="two", raw_cell="host(0)"))
    with pytest.raises(ZeroDivisionError) as caught:
        names["host"](0)
    values.add_raised(caught.value)
    assert texts(values) == [("one", 2, "✕ ZeroDivisionError: division by zero")]
    origins.begin(SimpleNamespace(cell_id="three", raw_cell="1"))
    values.add_raised(None)
    assert len(texts(values)) == 1
    origins.begin(SimpleNamespace(cell_id="two", raw_cell="host(1)"))
    values.add_raised(None)
    assert texts(values) == []


@pytest.mark.kept
def test_line_of_a_cell_that_the_user_stopped_has_no_exception():
    origins = cells(one="def host(x):\n    raise KeyboardInterrupt")
    values, names = LineValues(origins), {}
    exec(compile("def host(x):\n    raise KeyboardInterrupt", *origins.cells, "exec"), names)
    origins.begin(SimpleNamespace(cell_id="two", raw_cell="host(0)"))
    with pytest.raises(KeyboardInterrupt) as caught:
        names["host"](0)
    values.add_raised(caught.value)
    assert texts(values) == []


def test_cell_that_was_not_watched_again_keeps_its_values():
    values = LineValues(cells(one="first", two="second"))
    values.add([(variable("first"), ""), (variable("model.py"), ""), (variable("second"), "")])
    values.add([(variable("second", values=(1.0,)), "")])
    assert texts(values) == [("one", 1, "y 0.5 → 0.25"), ("two", 1, "y 1")]


def test_cell_that_ran_with_another_source_has_no_values():
    origins = cells(one="first")
    values = LineValues(origins)
    values.add([(variable("first"), "")])
    origins.begin(SimpleNamespace(cell_id="one", raw_cell="edited"))
    assert texts(values) == []


def test_exception_has_no_module_path_and_a_wrong_result_is_no_value():
    source = "class TooHot(Exception): ...\ndef host(x):\n    raise x"
    origins = cells(one=source)
    values, names = LineValues(origins), {"__name__": "package.module"}
    exec(compile(source, *origins.cells, "exec"), names)
    origins.begin(SimpleNamespace(cell_id="two", raw_cell="host(0)"))
    for error, shown in ((names["TooHot"]("373 K"), "✕ TooHot: 373 K"), (ResultError("no"), None)):
        with pytest.raises(type(error)) as caught:
            names["host"](error)
        values.add_raised(caught.value)
        assert [text for *_, text in texts(values)] == ([shown] if shown else [])
