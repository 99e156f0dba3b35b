"""The referees are all there: `tests/kept.txt` names them, and their table has every case."""

import re

import pytest

from tests import kept


def test_every_row_of_the_list_is_a_folder_a_file_or_a_test_that_exists():
    rows = kept.rows()
    assert rows == sorted(set(rows))
    for row in rows:
        path, _, function = row.partition("::")
        assert (kept.ROOT / path).exists(), row
        assert not function or f"\ndef {function}(" in (kept.ROOT / path).read_text("utf-8"), row


def test_pytest_runs_every_kept_test_with_every_case():
    changed = kept.differences(kept.read(), *kept.collected())
    assert not changed, "accept this by `python -m tests.kept --write`:\n" + "\n".join(changed)


def test_nothing_but_the_table_of_long_tests_leaves_tests_out():
    """Those in a browser are run apart, and tests/conftest.py leaves out files without tests."""
    text = "".join((kept.ROOT / name).read_text("utf-8") for name in ("Makefile", "pyproject.toml"))
    assert set(re.findall(r"--(?:ignore|ignore-glob|deselect)[ =](\S+)", text)) == {"tests/browser"}
    confs = [path.read_text("utf-8") for path in kept.ROOT.glob("tests/**/conftest.py")]
    assert re.findall(r"\w*(?:collect_ignore|ignore_collect)\w*", "".join(confs)) == [
        "pytest_ignore_collect"
    ]


SPARED = "(1 may be skipped or fail)"
BEFORE = {"": "", "test_a": "3", "test_b": f"* {SPARED}"}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({**BEFORE, "test_b": f"1 {SPARED}"}, None),
        ({**BEFORE, "test_a": "2"}, "::test_a: 3 before, 2 now"),
        ({**BEFORE, "test_a": f"3 {SPARED}"}, f"::test_a: 3 before, 3 {SPARED} now"),
        ({**BEFORE, "test_b": "1"}, f"::test_b: {SPARED} before, no remark now"),
        ({**BEFORE, "": "(skips: 1)"}, ": no remark before, (skips: 1) now"),
        ({**BEFORE, "test_c": "1"}, "::test_c: none before, 1 now"),
        ({"": "", "test_b": f"1 {SPARED}"}, "::test_a: 3 before, none now"),
    ],
)
def test_each_test_that_was_lost_or_may_be_skipped_now_is_named(now, said):
    found = kept.differences({"tests/test_x.py": BEFORE}, {"tests/test_x.py": now}, [])
    assert found == ([] if said is None else [f"tests/test_x.py{said}"])
    assert kept.differences({"tests/test_x.py": BEFORE}, {}, ["tests/test_x.py"]) == []
