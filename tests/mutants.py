"""Plants mistakes in the package, one at a time, and says which test notices each.

`make mutants`, or ``python -m tests.mutants --only NAME ...``. It changes files of this checkout
and puts them back; so nothing else may use the checkout meanwhile.
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
SECONDS = 300  # that the tests of one mistake may take

TABLE = ROOT / "tests" / "mutants.txt"


class Mutant(NamedTuple):
    """One mistake: `old` stands once in `file`, and `new` takes its place."""

    name: str
    file: Path
    tests: list[str]
    old: str
    new: str

    @property
    def is_of_frontend(self) -> bool:
        return self.file.suffix == ".ts"


def mutants() -> list[Mutant]:
    """The rows of the table."""
    found = []
    _, *rows = TABLE.read_text("utf-8").strip().split("\n# ")
    for row in rows:
        head, *lines = row.split("\n")
        name, path, tests = head.split(": ")
        old = "\n".join(line[2:] for line in lines if line.startswith("- "))
        new = "\n".join(line[2:] for line in lines if line.startswith("+ "))
        folder = "test" if path.startswith(FRONTEND) else "tests"
        file = ROOT / path if folder == "test" else ROOT / PACKAGE / path
        found.append(Mutant(name, file, [f"{folder}/{one}" for one in tests.split()], old, new))
    return found


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Has the mistake in its file, whose bytes and times are the old ones afterwards."""
    before, times = mutant.file.read_bytes(), mutant.file.stat()
    try:
        mutant.file.write_text(before.decode().replace(mutant.old, mutant.new), "utf-8")
        yield
    finally:
        mutant.file.write_bytes(before)
        os.utime(mutant.file, ns=(times.st_atime_ns, times.st_mtime_ns))


def run_tests(tests: list[str], *, frontend: bool) -> tuple[int | None, str]:
    """Exit status and output of some tests; None: they did not end in time."""
    python = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
    command = ["npx", "vitest", "run", "--bail=1"] if frontend else python
    with subprocess.Popen(
        [*command, *tests],
        cwd=ROOT / FRONTEND if frontend else ROOT,
        # A file that is planted twice within a second would look the same to Python's cache.
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
        finally:  # kernels and workers of theirs too
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return return_code


def noticed_by(mutant: Mutant) -> str:
    """The first test that fails with the mistake; empty if none does."""
    with planted(mutant):
        status, output = run_tests(mutant.tests, frontend=mutant.is_of_frontend)
    if status == 0:
        return ""
    if status is None:
        return f"hangs: {' '.join(mutant.tests)}"
    failed = re.search(r"^ ?(?:FAILED|ERROR|FAIL) +(tests?/.+?)(?: - .*)?$", output, re.MULTILINE)
    if failed:
        return failed[1]
    if status < 0:
        return f"the tests end by signal {-status}"
    raise SystemExit(f"the tests of {mutant.name} cannot be run:\n{output[-3000:]}")


def check_unchanged(chosen: list[Mutant]) -> None:
    """Exits unless the files are as committed, and the tests green without a mistake."""
    folders = [PACKAGE, f"{FRONTEND}/src"]
    status = ["git", "status", "--porcelain", *folders]
    changed = subprocess.run(status, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        raise SystemExit(f"commit or put away first what is changed here:\n{changed}")
    for frontend in (False, True):
        own = [one.tests for one in chosen if one.is_of_frontend is frontend]
        tests = sorted({test for some in own for test in some})
        for at in range(0, len(tests), 10):
            status, output = run_tests(tests[at : at + 10], frontend=frontend)
            if status != 0:
                raise SystemExit(f"red without any mistake, or too slow:\n{output[-3000:]}")


def main() -> int:
    """Plants the mistakes that are asked for; 1 if one was not noticed, or is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests as they are")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    every = mutants()
    if unknown := set(options.only) - {one.name for one in every}:
        parser.error(f"there is no mistake called {', '.join(sorted(unknown))}")
    chosen = [one for one in every if not options.only or one.name in options.only]
    check_unchanged([] if options.unchecked else chosen)
    missed = []
    for mutant in chosen:
        began = time.monotonic()
        is_there = mutant.file.exists() and mutant.file.read_text("utf-8").count(mutant.old) == 1
        found = noticed_by(mutant) if is_there else ""
        if not found:
            missed.append(mutant.name)
        said = found or ("NOT NOTICED" if is_there else "MOVED: its old text is not there once")
        print(f"{mutant.name} ({time.monotonic() - began:.0f} s): {said}", flush=True)
    print(f"{len(chosen)} mistakes, {len(chosen) - len(missed)} noticed", *missed)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
