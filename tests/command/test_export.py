"""``python -m jupyter_jaxcb export``: a saved recording in another format."""

import csv
import json

import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import main
from tests.report._several import SEVERAL

SITE = {"function": "bessel", "flavor": "pure", "line": 4, "column": 11, "cell": True,
        "source": "bessel(x)"}  # fmt: skip
CALL = {"start_ns": 0, "duration_ns": 7, "element": "", "thread": "MainThread", "error": "",
        "function": "bessel", "flavor": "pure", "where": "line 4",
        "operands": "float32[3] int8[]", "results": "float32[3]"}  # fmt: skip
VIEW = {
    "schema": 1,
    "environment": {"jax": "0.10.2"},
    "compilations": [
        {"program": "jit_f", "lower_ns": 20, "compile_ns": 300, "start_ns": -500},
        {"program": "jit_g", "lower_ns": 1, "compile_ns": 1, "start_ns": None},
    ],
    "sites": [SITE | {"where": "line 4"}, SITE | {"where": "line 4:12 (from line 9)"}],
    "calls": [
        CALL,
        CALL | {"start_ns": 10, "element": "0", "where": "line 4:12 (from line 9)"},
        CALL | {"start_ns": 20, "element": "1", "where": "line 4:12 (from line 9)",
                "thread": "worker", "error": "ValueError: no luck"},
    ],
}  # fmt: skip


@pytest.fixture
def view(tmp_path):
    """``view(**changes)`` writes the JSON of a view, and returns its path."""

    def write(**changes):
        (tmp_path / "host-trace.json").write_text(json.dumps(VIEW | changes))
        return tmp_path / "host-trace.json"

    return write


def exported(file, out, *options):
    assert main(["export", *options, str(file), str(out)]) == 0
    return out.read_text()


def refusal(capsys, *arguments):
    """Run the command, and return the last line that it writes, the error."""
    with pytest.raises(SystemExit) as ended:
        main(["export", *map(str, arguments)])
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("suffix", [".jaxcb", ".json"])
def test_recording_becomes_what_save_writes(tmp_path, suffix):
    SEVERAL.save(tmp_path / f"run{suffix}")
    for out in ("calls.csv", "run.perfetto.json", "again.json", "run.txt", "run.md"):
        SEVERAL.save(tmp_path / f"wanted {out}")
        text = exported(tmp_path / f"run{suffix}", tmp_path / out)
        assert text == (tmp_path / f"wanted {out}").read_text()


def test_dash_prints_a_report_as_save_writes_it(tmp_path, capsysbinary):
    SEVERAL.save(tmp_path / "run.jaxcb")
    for suffix, options in (
        (".md", []),
        (".md", ["--format", ".md"]),
        (".txt", ["--format", ".txt"]),
        (".sites.json", ["--format", ".sites.json"]),
    ):
        SEVERAL.save(tmp_path / f"wanted{suffix}")
        assert main(["export", *options, str(tmp_path / "run.jaxcb"), "-"]) == 0
        assert capsysbinary.readouterr().out == (tmp_path / f"wanted{suffix}").read_bytes()


def test_format_of_what_is_printed_is_refused_for_a_file(tmp_path, capsys):
    SEVERAL.save(tmp_path / "run.jaxcb")
    words = refusal(capsys, "--format", ".txt", tmp_path / "run.jaxcb", tmp_path / "run.md")
    assert "--format .txt is for OUT -" in words
    assert not (tmp_path / "run.md").exists()


def test_calls_of_a_view_become_a_table(view, tmp_path):
    rows = list(csv.DictReader(exported(view(), tmp_path / "calls.csv").splitlines()))
    for row, call in zip(rows, VIEW["calls"], strict=True):
        same = {name: str(value) for name, value in call.items()} | {"element": row["element"]}
        assert {name: row[name] for name in same} == same
        assert (row["program"], row["version"], row["callers"]) == ("", "0", "")
    assert [row["element"] for row in rows] == ["-1", "0", "1"]
    assert [row["line"] for row in rows] == ["4", "0", "0"]  # 0: `where` has more words


def test_calls_and_compilations_of_a_view_become_a_timeline(view, tmp_path):
    events = json.loads(exported(view(), tmp_path / "run.trace.json"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(one["cat"], one["ts"], one["dur"]) for one in slices] == [
        ("lower", 0, 0.02),
        ("compile", 0.02, 0.3),
        *(("host call", 0.5 + call["start_ns"] / 1e3, 0.007) for call in VIEW["calls"]),
    ]
    assert slices[-1]["args"]["error"] == "ValueError: no luck"
    assert "program" not in slices[-1]["args"]


def test_calls_of_one_crossing_of_a_view_are_together(view, tmp_path):
    element = CALL | {"where": "line 4:12 (from line 9)"}
    calls = [
        CALL,
        *(element | {"start_ns": 10 * n, "element": str(n), "crossing": 7} for n in (1, 2)),
        *(
            element
            | {"start_ns": 10 * n, "element": str(n), "crossing": 9, "thread": "worker 1 · pid 7"}
            for n in (3, 4, 5)
        ),
        CALL | {"start_ns": 60, "crossing": None},
    ]
    file = view(calls=calls, compilations=[])
    rows = csv.DictReader(exported(file, tmp_path / "calls.csv").splitlines())
    assert [int(row["crossing"]) for row in rows] == [0, 1, 1, 2, 2, 2, 3]
    events = json.loads(exported(file, tmp_path / "run.trace.json"))["traceEvents"]
    # Calls of several crossings may alternate on a worker, so there it has no slice.
    around = [(one["ts"], one["dur"]) for one in events if one.get("cat") == "crossing"]
    assert around == [(0.01, 0.017)]


def test_view_has_no_compiled_programs_so_it_becomes_nothing_that_shows_them(
    view, tmp_path, capsys
):
    words = refusal(capsys, view(), tmp_path / "run.html")
    assert "it has the host calls, but not the compiled programs" in words
    assert "export FILE.json OUT.csv" in words
    with pytest.raises(jaxcb.RecordingFileError, match="not the compiled programs"):
        jaxcb.load(view())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"calls": [7]}, "calls is [7]"),
        ({"calls": [CALL | {"start_ns": "0"}]}, "calls.start_ns is '0'"),
        ({"calls": [CALL | {"start_ns": 2**64}]}, "calls.start_ns is"),
        ({"calls": [CALL | {"element": "two"}]}, "calls.element is 'two'"),
        ({"calls": [CALL | {"crossing": "one"}]}, "calls.crossing is 'one'"),
        ({"calls": [CALL | {"operands": "float32"}]}, "calls.operands is 'float32'"),
        ({"calls": [CALL | {"error": None}]}, "calls.error is None"),
        ({"sites": 1}, "sites is 1"),
        ({"sites": [{}]}, "sites.flavor is None"),
        ({"environment": []}, "environment is []"),
        ({"compilations": [{}]}, "compilations.lower_ns is None"),
        ({"compilations": None}, "compilations is None"),
    ],
)
def test_damaged_view_is_refused_with_the_value_that_is_wrong(
    view, tmp_path, capsys, changes, words
):
    assert words in refusal(capsys, view(**changes), tmp_path / "calls.csv")


def test_unknown_suffix_a_missing_file_and_a_file_of_another_kind_are_refused(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("notes")
    assert "unknown file format: 'out.xyz'" in refusal(capsys, "run.jaxcb", "out.xyz")
    assert "unknown file format: '.'" in refusal(capsys, "run.jaxcb", ".")
    assert "cannot open 'none.jaxcb': No such file" in refusal(capsys, "none.jaxcb", "out.csv")
    words = refusal(capsys, tmp_path / "notes.txt", "out.csv")
    assert "it is not a recording" in words


def test_file_that_would_take_more_memory_than_the_limit_is_refused(view, tmp_path, capsys):
    words = refusal(capsys, "--limit-bytes", 1000, view(), tmp_path / "calls.csv")
    assert "--limit-bytes" in words
    limit = words.split()[-1].rstrip(".")
    assert exported(view(), tmp_path / "calls.csv", "--limit-bytes", limit)


def test_report_for_a_reader_that_leaves_is_no_error(tmp_path, without_reader):
    SEVERAL.save(tmp_path / "run.jaxcb")
    done = without_reader("export", tmp_path / "run.jaxcb", "-")
    assert (done.returncode, done.stderr) == (0, "")
