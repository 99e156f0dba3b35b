"""Measure this checkout against JAX's own callbacks and, with --against, another checkout.

    make bench
    make bench AGAINST=../other-worktree

Two processes measure each row in turn, on the same core: one imports the package of this checkout,
one that of the other, and both run `rows.py` of this checkout. A time is the CPU time of all
threads, for one call, in the fastest run: on a busy machine, the others were disturbed. A ratio
above 1 says that this checkout is slower. Rows that differ by more than 2 % are measured again in
new processes, because the place of code and data in memory alone can do that.
"""

import argparse
import collections
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "benchmarks" / "rows.py"
SECONDS = 0.02  # of CPU time, in a turn
MOST_TURNS = 60
SAME = 1.02  # a smaller ratio may be noise
SLOWER = 1.03  # what a change may not cost
WIDTH = 58


class Process:
    """A process that measures the package of a checkout."""

    def __init__(self, path):
        # Random addresses and hashes change times by some percent; so does memory that the C
        # library returns to the system after each call. A new checkout has no bytecode: the first
        # import writes it, unless the environment forbids that (empty: it does not).
        fixed = ["setarch", "-R"] if shutil.which("setarch") else []
        self.path, self.process = path, subprocess.Popen(
            [*fixed, sys.executable, "-P", str(ROWS)],
            env={
                **os.environ, "PYTHONPATH": str(path), "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "", "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
                "MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TOP_PAD_": str(1 << 26),
            },
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        file, self.jax, self.rows = self._answer()
        if Path(file).resolve() != (path / "jupyter_jaxcb" / "__init__.py").resolve():
            self.end()
            sys.exit(f"{path} is no checkout of jupyter_jaxcb: its import found {file}")

    def measure(self, row, who):
        """Return what a turn measured, or the text of an error."""
        print(json.dumps([row, who, SECONDS]), file=self.process.stdin, flush=True)
        return self._answer()

    def move(self, core):
        """Let all threads run on one core: on a shared machine, another may be half as fast."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), {core})

    def end(self):
        self.process.kill()
        self.process.communicate()

    def _answer(self):
        if line := self.process.stdout.readline():
            return json.loads(line)
        sys.exit(f"the process for {self.path} ended with status {self.process.wait()}")


class Row:
    """The fastest run of each turn, of ``"this"`` checkout, the ``"other"``, and ``"jax"``."""

    def __init__(self, name, has_jax, unit):
        self.name, self.has_jax, self.unit = name, has_jax, unit
        self.turns, self.errors = collections.defaultdict(list), {}

    def measure(self, processes, turns):
        """Measure in turn until `turns` turns have changed no time by more than a hundredth."""
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        since = turn = 0
        while since < turns and turn < MOST_TURNS and not self.errors:
            before = {who: self.value(who) for who in self.turns}
            for process in processes.values() if cores else ():
                process.move(cores[turn // 2 % len(cores)])  # on each, in both orders
            for who in sorted(processes, reverse=turn % 2):
                self._add(who, processes[who].measure(self.name, "ours"))
            if self.has_jax and turn % 3 == 0:
                for process in processes.values():  # what they ran before is the same in both
                    self._add("jax", process.measure(self.name, "jax"))
            if self.unit != "s":
                return  # memory is the same in each turn
            changed = any(abs(self.value(who) / before[who] - 1) > 0.01 for who in before)
            since, turn = 0 if changed else since + 1, turn + 1

    def _add(self, who, answer):
        if isinstance(answer, str):
            self.errors[who] = answer
        else:
            self.turns[who].append(min(answer))

    def value(self, who):
        return min(self.turns[who])

    def ratio(self, to):
        """Return this / `to`, or None if one of them was not measured."""
        if self.errors or to not in self.turns:
            return None
        return self.value("this") / self.value(to)

    def differs(self):
        ratio = self.ratio("other")
        return ratio is not None and not 1 / SAME < ratio < SAME

    def is_slower(self):
        return (self.ratio("other") or 0) > SLOWER

    def __str__(self):
        if self.errors:
            return f"{self.name:<{WIDTH}}  " + "; ".join(map(": ".join, self.errors.items()))
        other, of_jax = self.ratio("other"), self.ratio("jax")
        cells = [f"{self.name:<{WIDTH}}  {in_words(self.value('this'), self.unit):>9}"]
        if other is not None:
            cells.append(f"{other:>12.2f} {'slower' if self.is_slower() else '':6}")
        if of_jax is not None:
            cells.append(f"{of_jax:>10.3f}")
        return "  ".join(cells).rstrip()


def in_words(value, unit):
    for limit, factor, name in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1, 1e3, "ms")):
        if unit == "s" and value < limit:
            return f"{value * factor:.3g} {name}"
    return f"{value:.3g} {unit}"


def measured(paths, turns, pairs, only):
    """Return the rows, measured in one pair of processes, those that differ in up to `pairs`."""
    rows = None
    for _ in range(pairs):
        processes = {who: Process(path) for who, path in paths.items()}
        try:
            if rows is None:
                print(f"JAX {processes['this'].jax}, Python {platform.python_version()}, "
                      f"{os.cpu_count()} cores", flush=True)  # fmt: skip
                known = processes["this"].rows.items()
                rows = again = [Row(name, *facts) for name, facts in known if only in name]
            for row in again:
                row.measure(processes, turns)
                print(row, file=sys.stderr, flush=True)
        finally:
            for process in processes.values():
                process.end()
        again = [row for row in rows if row.differs()]
        if not again:
            break
    return rows


def main():
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another checkout of the package")
    parser.add_argument("--turns", type=int, default=8, help="turns that change nothing")
    parser.add_argument("--pairs", type=int, default=5, help="most pairs of processes")
    parser.add_argument("--only", default="", help="a part of the names of rows")
    options = parser.parse_args()
    paths = {"this": ROOT, **({"other": options.against.resolve()} if options.against else {})}
    rows = measured(paths, options.turns, options.pairs, options.only)
    against = f"{'this / other':>12} {'':6}  " if options.against else ""
    print(f"{'CPU time':<{WIDTH}}  {'this':>9}  {against}{'this / JAX':>10}")
    print(*rows, sep="\n")
    if options.against:
        slower = [row.name for row in rows if row.is_slower()]
        print(f"slower by more than 3 %: {'; '.join(slower) or 'no row'}")
    sys.exit(any("this" in row.errors or "jax" in row.errors for row in rows))


if __name__ == "__main__":
    main()
