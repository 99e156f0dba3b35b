"""Choose the tests of `make test`; `make choose` repeats the choice.

Every test belongs to `make test`, unless tests/long_tests.txt leaves it to `make test-all`. That
table has each test function whose cases take `LIMIT_S` or longer together: "-" leaves it out, "+"
keeps it and says why. `make choose` measures all tests and writes the table anew:

1. Long test functions are left out.
2. Rows with "+" stay, if they are kept as the test of a real part (a kernel, a pool of workers).
3. `make mutants` runs without the tests that are left out. For each mistake that is not noticed,
   the long test that notices it is kept.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

LIMIT_S = 1.0
ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "long_tests.txt"
HEAD = f"""\
The test functions that take {LIMIT_S} s or longer, with their seconds: "-" runs in `make test-all`
only, "+" also in `make test`, for the reason behind it. `make choose` writes this table.
"""
NOTICES = "notices "


class LongTest(NamedTuple):
    """One row of the table."""

    test: str  # path::function, without the cases of a parametrized test
    seconds: float
    reason: str  # why `make test` keeps it; empty if it does not

    def __str__(self) -> str:
        kept = f": {self.reason}" if self.reason else ""
        return f"{'+' if kept else '-'} {self.seconds:5.1f} {self.test}{kept}"


def read() -> list[LongTest]:
    """Return the rows of the table."""
    row = re.compile(r"^[+-] +([\d.]+) (\S+?)(?:: (.*))?$", re.MULTILINE)
    text = TABLE.read_text("utf-8")
    return [LongTest(test, float(seconds), reason) for seconds, test, reason in row.findall(text)]


def write(rows: list[LongTest]) -> None:
    """Write the table, the longest tests first."""
    ordered = sorted(rows, key=lambda row: (-row.seconds, row.test))
    TABLE.write_text(HEAD + "\n" + "".join(f"{row}\n" for row in ordered), "utf-8")


def mark(items: list) -> None:
    """Mark the collected tests that `make test` leaves out as `long`."""
    left_out = {row.test for row in read() if not row.reason}
    for item in items:
        if item.nodeid.split("[")[0] in left_out:
            item.add_marker("long")


def seconds_by_test(reports: list[str]) -> dict[str, float]:
    """Return the seconds of each test function in files that ``--junit-xml`` wrote.

    Tests in a browser share the notebook of their file, which only the first has to open. So each
    gets an equal share of the time of its file.
    """
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            function = case.get("name", "").split("[")[0]
            seconds[case.get("file", "")][function] += float(case.get("time", 0))
    for file in seconds:
        if file.startswith("tests/browser/"):
            share = seconds[file].total() / len(seconds[file])
            seconds[file] = Counter(dict.fromkeys(seconds[file], share))
    return {f"{file}::{test}": s for file in seconds for test, s in seconds[file].items()}


def run_mutants(*options: str) -> dict[str, str]:
    """Plant the mistakes; return by name the test that noticed each, or an empty string."""
    command = [sys.executable, "-m", "tests.mutants", "--unchecked", *options]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    print(printed, flush=True)
    found = re.findall(r"^(\S+) \(\d+ s\): (NOT NOTICED|.*)$", printed, re.MULTILINE)
    return {name: "" if test == "NOT NOTICED" else test for name, test in found}


def main() -> None:
    """Write the table from the reports of a run of all tests."""
    seconds = seconds_by_test(sys.argv[1:])
    kept = {row.test: row.reason for row in read() if not row.reason.startswith(NOTICES)}
    rows = {
        test: LongTest(test, took, kept.get(test, ""))
        for test, took in seconds.items()
        if took >= LIMIT_S
    }
    write(list(rows.values()))
    noticed = run_mutants("--markers", "not long")
    if missed := [name for name, test in noticed.items() if not test]:
        for name, test in run_mutants("--markers", "long", "--only", *missed).items():
            if (row := rows.get(test.split("[")[0])) is not None:
                rows[row.test] = row._replace(reason=f"{NOTICES}{name}")
        write(list(rows.values()))
    left_out = sum(row.seconds for row in rows.values() if not row.reason)
    print(f"{sum(seconds.values()):.0f} s of tests, {left_out:.0f} s left to make test-all")


if __name__ == "__main__":
    main()
