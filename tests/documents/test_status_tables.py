"""The page about missing calls has the tables that decide statuses, and these give each reason."""

import importlib
import re
from collections import Counter

import pytest

from jupyter_jaxcb.recording import Reason, Status

ROW = re.compile(r"^\| (?!evidence|---)(.+) \| (.*) \| (.*) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def rules(from_code):
    """The rows of all tables, as in the code."""
    tables = importlib.import_module("status_tables").TABLES
    return [rule for table, _ in tables.values() for rule in table]


@pytest.fixture(scope="module")
def rows(pages):
    """The cells of the rows on the page: evidence, status, reason, why."""
    (_, section) = pages["guide/why-not-called.md"].split("### In a compiled program", 1)
    return ROW.findall(section)


@pytest.mark.parametrize("status", Status)
def test_status_is_on_the_page_in_exactly_the_rows_that_give_it(rows, rules, status):
    found = [row[0] for row in rows if row[1] == status.words]
    assert found == [rule.evidence for rule in rules if rule.status is status]
    assert found


@pytest.mark.parametrize("reason", Reason)
def test_reason_is_on_the_page_in_exactly_the_rows_that_give_it(rows, rules, reason):
    found = [row[0] for row in rows if row[2] == f"`{reason}`"]
    assert found == [rule.evidence for rule in rules if rule.reason is reason]
    assert found


def test_each_row_has_evidence_of_its_own_and_says_why_it_is_right(rows, rules):
    assert len(rows) == len(rules)
    evidence = Counter(row[0] for row in rows)
    assert [words for words, count in evidence.items() if count > 1] == []
    assert all(row[3] for row in rows)
