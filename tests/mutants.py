"""Plant mistakes in copies of the checkout, one at a time, and print the test that notices each.

Run `make mutants`, or ``python -m tests.mutants --only NAME ...``. With ``--markers "not long"``
only the tests of `make test` may notice them.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = "labextension"
# What git ignores and the tests read; linked, since the tests leave it as it is.
BUILT = "jupyter_jaxcb/static", "jupyter_jaxcb/labextension", "labextension/node_modules"
SECONDS = 300  # timeout of the tests of one mistake

TABLE = ROOT / "tests" / "mutants.txt"
# Python's bytecode cache confuses two versions of a file written within one second.
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


class Mutant(NamedTuple):
    """One mistake: it replaces `old`, which occurs once in `file`, with `new`."""

    name: str
    file: str  # relative to the checkout, as are `tests`
    tests: list[str]
    old: str
    new: str

    @property
    def is_of_frontend(self) -> bool:
        return self.file.endswith(".ts")

    def is_at_home(self, root: Path) -> bool:
        """Return whether the old text occurs once in its file."""
        file = root / self.file
        return file.exists() and file.read_text("utf-8").count(self.old) == 1


def mutants() -> list[Mutant]:
    """Return the rows of the table."""
    found = []
    _, *rows = TABLE.read_text("utf-8").strip().split("\n# ")
    for row in rows:
        head, *lines = row.split("\n")
        name, file, tests = head.split(": ")
        old = "\n".join(line[2:] for line in lines if line.startswith("- "))
        new = "\n".join(line[2:] for line in lines if line.startswith("+ "))
        folder = "test" if file.endswith(".ts") else "tests"
        found.append(Mutant(name, file, [f"{folder}/{test}" for test in tests.split()], old, new))
    return found


@contextmanager
def copies(number: int) -> Iterator[queue.SimpleQueue[Path]]:
    """Copy the files that git does not ignore, as they are now, `number` times."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    files = [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for n in range(number):
            copy = Path(folder) / str(n)
            for name in files:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
            for name in BUILT:
                (copy / name).symlink_to(ROOT / name)
            free.put(copy)
        yield free


@contextmanager
def planted(mutant: Mutant, root: Path) -> Iterator[None]:
    """Plant the mistake in a copy; restore its file on exit."""
    file = root / mutant.file
    before = file.read_text("utf-8")
    try:
        file.write_text(before.replace(mutant.old, mutant.new), "utf-8")
        yield
    finally:
        file.write_text(before, "utf-8")


def run_tests(
    root: Path, tests: list[str], markers: str, *, frontend: bool
) -> tuple[int | None, str]:
    """Return the exit status (None: a timeout) and the output of some tests."""
    python = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
    command = ["npx", "vitest", "run", "--bail=1"] if frontend else [*python, "-m", markers]
    with subprocess.Popen(
        [*command, *tests],
        cwd=root / FRONTEND if frontend else root,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:  # also ends the kernels and workers that the tests started
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def noticed_by(mutant: Mutant, root: Path, markers: str) -> str:
    """Return the first test that fails with the mistake, or an empty string."""
    with planted(mutant, root):
        status, output = run_tests(root, mutant.tests, markers, frontend=mutant.is_of_frontend)
    if status in (0, 5):  # 5: all of its tests are left out
        return ""
    if status is None:
        return f"hangs: {' '.join(mutant.tests)}"
    failed = re.search(
        r"^ ?(?:FAILED|ERROR|FAIL) +(?:\|\w+\| )?(tests?/.+?)(?: - .*)?$", output, re.MULTILINE
    )
    if failed:
        return failed[1]
    if status < 0:
        return f"signal {-status} ended the tests"
    raise SystemExit(f"the tests of {mutant.name} cannot be run:\n{output[-3000:]}")


def check_unchanged(chosen: list[Mutant], root: Path, markers: str) -> None:
    """Exit unless the tests pass without a mistake."""
    for frontend in (False, True):
        lists = [mutant.tests for mutant in chosen if mutant.is_of_frontend is frontend]
        tests = sorted({test for tests in lists for test in tests})
        for start in range(0, len(tests), 10):
            status, output = run_tests(root, tests[start : start + 10], markers, frontend=frontend)
            if status not in (0, 5):
                raise SystemExit(
                    f"the tests fail without a mistake, or time out:\n{output[-3000:]}"
                )


def main() -> int:
    """Plant the chosen mistakes; return 1 if a test misses one or its old text has moved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--markers", default="", help="run only these tests, as pytest's -m")
    parser.add_argument("--jobs", type=int, default=2, help="mistakes at a time")
    parser.add_argument(
        "--unchecked", action="store_true", help="do not run the tests without mistakes first"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    every = mutants()
    if unknown := set(options.only) - {mutant.name for mutant in every}:
        parser.error(f"no mistake is called {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in every if not options.only or mutant.name in options.only]
    missed = []

    def judge(mutant: Mutant) -> None:
        root = free.get()
        try:
            began, is_there = time.monotonic(), mutant.is_at_home(root)
            found = noticed_by(mutant, root, options.markers) if is_there else ""
        finally:
            free.put(root)
        if not found:
            missed.append(mutant.name)
        result = found or ("NOT NOTICED" if is_there else "MOVED: its old text must occur once")
        print(f"{mutant.name} ({time.monotonic() - began:.0f} s): {result}", flush=True)

    with copies(options.jobs) as free:
        if not options.unchecked:
            root = free.get()
            check_unchanged(chosen, root, options.markers)
            free.put(root)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(judge, chosen))
    print(f"{len(chosen)} mistakes, {len(chosen) - len(missed)} noticed", *missed)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
