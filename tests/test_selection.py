"""The table of long tests, which `make choose` writes, fits the tests."""

from tests.mutants import mutants
from tests.selection import LIMIT_S, NOTICES, ROOT, read


def test_each_row_is_a_test_that_exists():
    rows = read()
    assert len(rows) == len({row.test for row in rows})
    for row in rows:
        path, _, function = row.test.partition("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8"), row.test
        assert row.seconds >= LIMIT_S


def test_each_row_that_is_kept_for_a_planted_mistake_names_one():
    reasons = [row.reason for row in read() if row.reason.startswith(NOTICES)]
    assert {reason.removeprefix(NOTICES) for reason in reasons} <= {one.name for one in mutants()}
