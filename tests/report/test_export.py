"""Every exporter accepts every recording, and standard readers read its files back."""

import csv
import io
import sys

import pytest

from tests.interface import FORMATS, Recording, to_text

from ._several import SEVERAL, recordings, saved


@recordings
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_exporter_takes_every_recording(suffix, recording, tmp_path):
    assert saved(recording, tmp_path, suffix)


def test_longest_suffix_decides(tmp_path):
    assert b"traceEvents" in saved(SEVERAL, tmp_path, ".perfetto.json")
    assert b"traceEvents" in saved(SEVERAL, tmp_path, ".TRACE.json")
    assert b"traceEvents" not in saved(SEVERAL, tmp_path, ".json")


def test_csv_has_a_row_for_each_call(tmp_path):
    text = saved(SEVERAL, tmp_path, ".csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for row, call in zip(rows, SEVERAL, strict=True):
        fact = SEVERAL.lowered[call.lowered]
        assert int(row["start_ns"]) == call.start_ns
        assert int(row["duration_ns"]) == call.end_ns - call.start_ns
        assert (int(row["crossing"]), int(row["element"])) == (call.crossing, call.element)
        assert (row["function"], row["file"]) == (fact.site.function, fact.site.file)
        assert row["error"] == (call.error or "").replace("\ud800", r"\ud800")
        assert row["program"] == (fact.program.name if fact.program else "")
        assert row["thread"] == SEVERAL.threads[call.thread]
    assert [row["operands"] for row in rows[-2:]] == ["int32[]"] * 2
    assert rows[1]["device"] == "cpu:1"


def test_text_file_is_the_report(tmp_path):
    text = saved(SEVERAL, tmp_path, ".txt").decode()
    assert text == f"{to_text(SEVERAL)}\njax 0.0, backend cpu\n"
    assert "no host calls" in saved(Recording(), tmp_path, ".txt").decode()


def test_pandas_table_equals_csv(tmp_path):
    pandas = pytest.importorskip("pandas", reason="to_pandas needs pandas")
    frame = SEVERAL.to_pandas()
    text = saved(SEVERAL, tmp_path, ".csv").decode()
    read = pandas.read_csv(io.StringIO(text))
    assert list(frame) == list(read)
    for name in set(frame) - {"error"}:
        assert frame[name].astype(object).fillna("").tolist() == read[name].fillna("").tolist()
    assert frame["error"].isna().tolist() == [call.error is None for call in SEVERAL]
    assert frame.groupby("function", observed=True).size().to_dict() == {"bessel": 3, "log": 3}
    assert len(Recording().to_pandas()) == 0


def test_missing_pandas_is_reported_with_an_alternative(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas.*pip install pandas.*csv"):
        SEVERAL.to_pandas()
