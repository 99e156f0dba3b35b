"""Plant mistakes in the package, one at a time, and print the test that notices each.

Run `make mutants`, or ``python -m tests.mutants --only NAME ...``. It changes files of this
checkout and restores them, so nothing else may use the checkout meanwhile.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, FRONTEND = "jupyter_jaxcb", "labextension"
SECONDS = 300  # timeout of the tests of one mistake

TABLE = ROOT / "tests" / "mutants.txt"


class Mutant(NamedTuple):
    """One mistake: it replaces `old`, which occurs once in `file`, with `new`."""

    name: str
    file: Path
    tests: list[str]
    old: str
    new: str

    @property
    def is_of_frontend(self) -> bool:
        return self.file.suffix == ".ts"


def mutants() -> list[Mutant]:
    """Return the rows of the table."""
    found = []
    _, *rows = TABLE.read_text("utf-8").strip().split("\n# ")
    for row in rows:
        head, *lines = row.split("\n")
        name, path, tests = head.split(": ")
        old = "\n".join(line[2:] for line in lines if line.startswith("- "))
        new = "\n".join(line[2:] for line in lines if line.startswith("+ "))
        folder = "test" if path.startswith(FRONTEND) else "tests"
        file = ROOT / path if folder == "test" else ROOT / PACKAGE / path
        found.append(Mutant(name, file, [f"{folder}/{test}" for test in tests.split()], old, new))
    return found


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Plant the mistake; restore the bytes and times of its file on exit."""
    before, times = mutant.file.read_bytes(), mutant.file.stat()
    try:
        mutant.file.write_text(before.decode().replace(mutant.old, mutant.new), "utf-8")
        yield
    finally:
        mutant.file.write_bytes(before)
        os.utime(mutant.file, ns=(times.st_atime_ns, times.st_mtime_ns))


def run_tests(tests: list[str], *, frontend: bool) -> tuple[int | None, str]:
    """Return the exit status (None: a timeout) and the output of some tests."""
    python = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
    command = ["npx", "vitest", "run", "--bail=1"] if frontend else python
    with subprocess.Popen(
        [*command, *tests],
        cwd=ROOT / FRONTEND if frontend else ROOT,
        # Python's bytecode cache confuses two versions of a file written within one second.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            return_code = None, ""
            output, _ = process.communicate(timeout=SECONDS)
            return_code = process.returncode, output
        except subprocess.TimeoutExpired:
            pass
        finally:  # also ends the kernels and workers that the tests started
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return return_code


def noticed_by(mutant: Mutant) -> str:
    """Return the first test that fails with the mistake, or an empty string."""
    with planted(mutant):
        status, output = run_tests(mutant.tests, frontend=mutant.is_of_frontend)
    if status == 0:
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


def check_unchanged(chosen: list[Mutant]) -> None:
    """Exit unless the files are committed and the tests pass without a mistake."""
    folders = [PACKAGE, f"{FRONTEND}/src"]
    status = ["git", "status", "--porcelain", *folders]
    changed = subprocess.run(status, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        raise SystemExit(f"commit or stash these changes first:\n{changed}")
    for frontend in (False, True):
        lists = [mutant.tests for mutant in chosen if mutant.is_of_frontend is frontend]
        tests = sorted({test for tests in lists for test in tests})
        for start in range(0, len(tests), 10):
            status, output = run_tests(tests[start : start + 10], frontend=frontend)
            if status != 0:
                raise SystemExit(
                    f"the tests fail without a mistake, or time out:\n{output[-3000:]}"
                )


def main() -> int:
    """Plant the chosen mistakes; return 1 if a test misses one or its old text has moved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument(
        "--unchecked", action="store_true", help="do not run the tests without mistakes first"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    every = mutants()
    if unknown := set(options.only) - {mutant.name for mutant in every}:
        parser.error(f"no mistake is called {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in every if not options.only or mutant.name in options.only]
    check_unchanged([] if options.unchecked else chosen)
    missed = []
    for mutant in chosen:
        began = time.monotonic()
        is_there = mutant.file.exists() and mutant.file.read_text("utf-8").count(mutant.old) == 1
        found = noticed_by(mutant) if is_there else ""
        if not found:
            missed.append(mutant.name)
        result = found or ("NOT NOTICED" if is_there else "MOVED: its old text must occur once")
        print(f"{mutant.name} ({time.monotonic() - began:.0f} s): {result}", flush=True)
    print(f"{len(chosen)} mistakes, {len(chosen) - len(missed)} noticed", *missed)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
