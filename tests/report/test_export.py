"""Every exporter accepts every recording, and standard readers read its files back."""

import csv
import dataclasses
import io
import sys

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import FORMATS, LoweredSite, Recorder, record_call
from jupyter_jaxcb.report import export, to_text
from tests.interface import Recording

from ._several import BESSEL, SEVERAL, recorded, recordings, saved

ARROW = (".arrow", ".feather", ".parquet")


@recordings
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_exporter_takes_every_recording(suffix, recording, tmp_path):
    if suffix in ARROW:
        pytest.importorskip("pyarrow", reason="the table of calls for Arrow needs pyarrow")
    assert saved(recording, tmp_path, suffix)


def test_longest_suffix_decides(tmp_path):
    assert b"traceEvents" in saved(SEVERAL, tmp_path, ".perfetto.json")
    assert b"traceEvents" in saved(SEVERAL, tmp_path, ".TRACE.json")
    assert b"traceEvents" not in saved(SEVERAL, tmp_path, ".json")


def test_csv_has_a_row_for_each_call(tmp_path):
    text = saved(SEVERAL, tmp_path, ".csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == len(SEVERAL)
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


@pytest.mark.parametrize(
    "error", ["two\nlines", "two\rlines", "two\r\nlines", 'a "b", c', "\n", '"']
)
def test_csv_keeps_errors_of_several_lines_in_their_cell(error, tmp_path):
    recorder = Recorder()
    fact = LoweredSite(BESSEL, None, -1, (), ())
    for n in (1, 2):
        record_call(recorder, fact, 1, n, n + 1, error)
    text = saved(recorder.freeze(), tmp_path, ".csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    assert [row["error"] for row in rows] == [error, error]
    assert [row["function"] for row in rows] == ["bessel", "bessel"]
    pandas = pytest.importorskip("pandas", reason="checked with pandas too")
    frame = pandas.read_csv(tmp_path / "recording.csv")
    assert frame["start_ns"].tolist() == [1, 2]
    assert frame["error"].tolist() == [error, error]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "=HYPERLINK(\"a\", 'b')\n"]


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_has_no_text_that_a_spreadsheet_reads_as_a_formula(text, tmp_path):
    site = dataclasses.replace(BESSEL, function=text, file=text)
    recorder = Recorder(clock=lambda: 0)
    record_call(recorder, LoweredSite(site, None, -1, (), (), device=text), 1, 5, 9, text)
    recording = dataclasses.replace(recorder.freeze(), threads=(text,))
    content = saved(recording, tmp_path, ".csv").decode()
    (row,) = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    for name in ("function", "file", "device", "error", "thread"):
        assert row[name] == f"'{text}"


def test_csv_leaves_numbers_and_other_texts_unchanged(tmp_path):
    text = saved(SEVERAL, tmp_path, ".csv").decode()
    first = next(csv.DictReader(io.StringIO(text, newline="")))
    assert (first["element"], first["line"], first["thread"]) == ("-1", "4", SEVERAL.threads[0])
    assert "'" not in text


def test_text_file_is_the_report(tmp_path):
    text = saved(SEVERAL, tmp_path, ".txt").decode()
    assert text == f"{to_text(SEVERAL)}\njax 0.0, backend cpu\n"
    assert "no host calls" in saved(Recording(), tmp_path, ".txt").decode()


@pytest.mark.parametrize("suffix", [".csv", ".perfetto.json", ".json", ".jaxcb"])
def test_many_calls_are_written_in_batches(suffix):
    sizes = []

    class File:
        def write(self, data):
            sizes.append(len(data))

    FORMATS[suffix](recorded(elements=300_000), File())
    assert len(sizes) > 4
    assert max(sizes) < 20_000_000


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


@pytest.mark.parametrize("suffix", ARROW)
def test_arrow_files_equal_csv(suffix, tmp_path):
    pytest.importorskip("pyarrow", reason="the table of calls for Arrow needs pyarrow")
    from pyarrow import feather, parquet

    export(SEVERAL, tmp_path / f"calls{suffix}")
    read = parquet.read_table if suffix == ".parquet" else feather.read_table
    columns = read(tmp_path / f"calls{suffix}").to_pydict()
    text = saved(SEVERAL, tmp_path, ".csv").decode()
    for n, row in enumerate(csv.DictReader(io.StringIO(text, newline=""))):
        found = {name: columns[name][n] for name in row}
        assert {name: "" if v is None else str(v) for name, v in found.items()} == row


@pytest.mark.parametrize("suffix", ARROW)
def test_missing_pyarrow_is_reported_with_an_alternative(suffix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pyarrow.*pip install pyarrow.*\.csv"):
        SEVERAL.save(tmp_path / f"calls{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_missing_pandas_is_reported_with_an_alternative(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas.*pip install pandas.*csv"):
        SEVERAL.to_pandas()


def test_error_for_a_record_says_to_pass_its_recording(tmp_path):
    with jaxcb.record() as r:
        pass
    with pytest.raises(TypeError, match=r"cannot export a Record, .*Pass r\.recording"):
        export(r, tmp_path / "calls.csv")
