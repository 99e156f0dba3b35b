"""``python -m jupyter_jaxcb export``: a saved recording in another format."""

import pytest

from tests.interface import main
from tests.report._several import SEVERAL


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


def test_unknown_suffix_a_missing_file_and_a_file_of_another_kind_are_refused(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("notes")
    assert "unknown file format: 'out.xyz'" in refusal(capsys, "run.jaxcb", "out.xyz")
    assert "unknown file format: '.'" in refusal(capsys, "run.jaxcb", ".")
    assert "cannot open 'none.jaxcb': No such file" in refusal(capsys, "none.jaxcb", "out.csv")
    words = refusal(capsys, tmp_path / "notes.txt", "out.csv")
    assert "it is not a recording" in words


def test_file_that_would_take_more_memory_than_the_limit_is_refused(tmp_path, capsys):
    SEVERAL.save(tmp_path / "run.json")
    words = refusal(capsys, "--limit-bytes", 1000, tmp_path / "run.json", tmp_path / "calls.csv")
    assert "--limit-bytes" in words
    limit = words.split()[-1].rstrip(".")
    assert exported(tmp_path / "run.json", tmp_path / "calls.csv", "--limit-bytes", limit)
