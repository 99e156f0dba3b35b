"""The referees: tests that stay as they are while rooms of the package are written again.

tests/kept.txt names them, besides those that hold a promise of a public name (tests/promises.tsv),
and those that have the marker `kept` in the code. The table tests/kept_cases.txt has each of them
with its number of cases, each file with its number of calls of `pytest.skip` and the like, and each
notebook with its number of cells with code. ``python -m tests.kept --write`` writes it, and
tests/test_kept.py compares it with what pytest collects.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "kept.txt"
TABLE = ROOT / "tests" / "kept_cases.txt"
PROMISES = ROOT / "tests" / "promises.tsv"
HEAD = """\
The referees, see tests/kept.txt: each test function with its number of cases; "*" is a number that
differs between versions of Python, JAX or the package. `python -m tests.kept --write` writes this
table, and keeps each "*".
"""
ANY = "*"
OUTPUT = "JAXCB_KEPT_OUTPUT"
SPARED = ("skip", "skipif", "xfail")  # markers with which a test may fail, or not run
Table = dict[str, dict[str, str]]  # by file and test function: its number of cases, and remarks


@functools.cache
def rows(but: str = "") -> list[str]:
    """Return the folders, files and tests of the list; of rows that begin with `but`."""
    return re.findall(rf"^{but}(tests/\S+): .", LIST.read_text("utf-8"), re.MULTILINE)


class Promise(NamedTuple):
    """What a public name promises: a row of the table of promises."""

    name: str  # "pure", "cast=", a magic, a command or an option
    of: str  # of a keyword: the functions that have it
    sentence: str  # from its documentation
    held_by: str  # file::test, one or several

    @property
    def goes(self) -> bool:
        """Whether it will be removed, so that no test need hold it."""
        return self.held_by == "goes"

    @property
    def tests(self) -> list[str]:
        """Return the tests that hold it."""
        return [] if self.goes else self.held_by.split()


@functools.cache
def promises() -> list[Promise]:
    """Return the rows of the table of promises."""
    _, *lines = PROMISES.read_text("utf-8").splitlines()
    return [Promise(*line.split("\t")) for line in lines]


@functools.cache
def is_listed(test: str) -> bool:
    """Return whether the list has this file or test, or the test holds a promise."""
    if any(test in promise.tests for promise in promises()):
        return True
    left_out, listed = (
        any(re.match(re.escape(row) + r"(?![^/:\[])", test) for row in rows(but))
        for but in ("but ", "")
    )
    return listed and not left_out


def mark(items: list) -> None:
    """Mark the collected tests of the list as `kept`."""
    for item in items:
        if is_listed(item.nodeid.partition("[")[0]):
            item.add_marker("kept")


def read() -> Table:
    """Return the table."""
    table: Table = {}
    cases: dict[str, str] = {}
    for line in TABLE.read_text("utf-8").splitlines() if TABLE.exists() else ():
        if row := re.fullmatch(r" +(\d+|\*) (\w+)(.*)", line):
            cases[row[2]] = row[1] + row[3]
        elif line.startswith(("tests/", "notebooks/")):
            file, _, remark = line.partition(" ")
            cases = table[file] = {"": remark}
    return table


def write(table: Table) -> None:
    """Write the table; numbers that were "*" before stay so."""
    before = read()
    lines = [HEAD]
    for file, cases in sorted(table.items()):
        lines.append(f"{file} {cases['']}".rstrip())
        for test in sorted(cases.keys() - {""}):
            number, *remarks = cases[test].split(" ", 1)
            if before.get(file, {}).get(test, "").startswith(ANY):
                number = ANY
            lines.append(" ".join([f"{number:>5} {test}", *remarks]))
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")


def collected() -> tuple[Table, list[str]]:
    """Return the table of the tests that pytest runs, and the files that it cannot import here."""
    tests = [*rows(), *(test for promise in promises() for test in promise.tests)]
    files = {test.partition("::")[0] for test in tests} | read().keys()
    for path in ROOT.glob("tests/**/test_*.py"):
        if "mark.kept" in path.read_text("utf-8"):
            files.add(path.relative_to(ROOT).as_posix())
    files = sorted(file for file in files if file.startswith("tests/") and (ROOT / file).exists())
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "table.json")
        environment = {**os.environ, OUTPUT: str(output), "PYTHONPATH": str(ROOT)}
        environment.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-qq", "--collect-only", "-p", "no:nbval",
             "-p", "no:cacheprovider", "-p", "tests.kept", *files],
            cwd=ROOT, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"pytest cannot collect the kept tests:\n{done.stdout}{done.stderr}")
        table, missing = json.loads(output.read_text("utf-8"))
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = sum(cell["cell_type"] == "code" for cell in cells)
        table[path.relative_to(ROOT).as_posix()] = {"": f"{code} cells with code"}
    return table, missing


def differences(frozen: Table, found: Table, not_imported: list[str]) -> list[str]:
    """Return a sentence for each test that was lost, changed or added since `frozen`."""
    sentences = []
    for file in sorted(frozen.keys() | found.keys()):
        before, now = frozen.get(file, {}), found.get(file, {})
        for test in sorted(before.keys() | now.keys()) if file not in not_imported else ():
            was, has = before.get(test, "none"), now.get(test, "none")
            if was.startswith(ANY) and now.get(test):
                was, has = was.partition(" ")[2], has.partition(" ")[2]
            if was != has and {was, has} != {"", "none"}:  # a whole file: its tests say it
                name = f"{file}::{test}" if test else file
                sentences.append(f"{name}: {was or 'no remark'} before, {has or 'no remark'} now")
    return sentences


# With ``-p tests.kept`` pytest calls what follows.

_not_imported: list[str] = []


def pytest_configure(config) -> None:
    """Look for no doctests in the files of tests, which takes as long as collecting the tests."""
    config.pluginmanager.unregister(config.pluginmanager.get_plugin("doctest"))


def pytest_collectreport(report) -> None:
    """Note a file that was skipped for a package that is not installed."""
    if report.skipped and "could not import" in str(report.longrepr):
        _not_imported.append(report.nodeid)


def pytest_collection_finish(session) -> None:
    """Write the table of the kept tests that pytest would run."""
    cases: Counter[tuple[str, str]] = Counter()
    spared: Counter[tuple[str, str]] = Counter()
    for item in session.items:
        if item.get_closest_marker("kept"):
            file, _, test = item.nodeid.partition("[")[0].partition("::")
            cases[file, test] += 1
            spared[file, test] += any(map(item.get_closest_marker, SPARED))
    table: Table = {}
    for (file, test), number in cases.items():
        remark = f" ({spared[file, test]} may be skipped or fail)" if spared[file, test] else ""
        table.setdefault(file, {"": _skips(ROOT / file)})[test] = f"{number}{remark}"
    Path(os.environ[OUTPUT]).write_text(json.dumps([table, _not_imported]), "utf-8")


def _skips(path: Path) -> str:
    found = len(re.findall(r"pytest\.(?:skip|importorskip|xfail)\(", path.read_text("utf-8")))
    return f"(skips in the code: {found})" if found else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write(collected()[0])
    else:
        print(*differences(read(), *collected()), sep="\n")
