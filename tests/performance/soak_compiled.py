"""Compiled functions that are registered, called and dropped, round by round.

Each round registers functions, calls them in eager code, under jit and under vmap, and drops them;
some of their programs fill the ring of recorded calls and are gone before the recording is read.
Every call is counted, and of the functions nothing is left: neither objects nor entries in tables,
neither threads nor files. numba keeps the machine code, so memory may grow for each function.

Run it with ``make soak SECONDS=3600``, or alone: ``python -m tests.performance.soak_compiled 600``.
"""

import gc
import os
import sys
import threading
import time
import weakref
from collections import Counter

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _failure, _log
from jupyter_jaxcb.capabilities.compiled._handler import LAST_ROW

from .soak import resident_mb

FUNCTIONS = 5  # of a round
FILL_EVERY = 10  # rounds
MAY_GROW_MB = 4  # for each function: numba's machine code, and ours


class CompiledSoak:
    """The functions of all rounds, and what was found.

    Attributes:
        totals: numbers of rounds, of functions and of recorded calls.
        wrong: messages about rounds that lost calls or left something behind.
    """

    def __init__(self):
        self.totals = Counter()
        self.wrong = []

    def round(self):
        """Register functions, call them, drop them; check counts and what is left."""
        before, functions = _left(), []
        fill = self.totals["rounds"] % FILL_EVERY == FILL_EVERY - 1
        with jaxcb.record() as r:
            made = sum(self._calls(number, functions, fill) for number in range(FUNCTIONS))
            _forget()
        _forget()
        self.totals.update(rounds=1, functions=FUNCTIONS, calls=made)
        counted = len(r.recording) + r.recording.overflow
        alive = sum(function() is not None for function in functions)
        self._check(counted == made, f"{made} calls, {counted} recorded")
        self._check(not alive, f"{alive} functions are alive")
        left = _left()
        has_grown = any(now > then for now, then in zip(left, before, strict=True))
        self._check(not has_grown, f"{before} before, {left} after")

    def _calls(self, number, functions, fill):
        """Call a new function; return how often."""
        added = np.float32([number])
        callback = jaxcb.io(lambda x: x + added[0], result="x", compile="numba")
        functions.append(weakref.ref(callback.host.current))
        loop = jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda _, x: callback(x), np.float32(0)))
        count = LAST_ROW + 1_000 if fill and number == 0 else 100
        sums = callback(np.float32(1)), jax.jit(jax.vmap(callback))(np.ones(7, np.float32)).sum()
        right = float(loop(count)) == count * number and sums == (1 + number, 7 * (1 + number))
        self._check(right, f"wrong results of function {number}")
        return 1 + 7 + count

    def _check(self, right, problem):
        if not right:
            self.wrong.append(f"round {self.totals['rounds']}: {problem}")


def _forget():
    jax.clear_caches()
    for _ in range(2):  # programs first
        gc.collect()


def _left():
    """Return what may not grow: exceptions, blocks, threads, files."""
    return (
        len(_failure.kept), len(_failure.sites), len(_log.log._sites) - len(_log.log._gone),
        threading.active_count(), len(os.listdir("/proc/self/fd")),
    )  # fmt: skip


def main(seconds):
    soak, end = CompiledSoak(), time.monotonic() + seconds
    soak.round()
    began = resident_mb()
    while time.monotonic() < end:
        soak.round()
    functions = soak.totals["functions"] - FUNCTIONS
    grown = (resident_mb() - began) / max(functions, 1)
    soak._check(grown < MAY_GROW_MB, f"memory grew by {grown:.1f} MB for each function")
    print(dict(soak.totals), f"{grown:.2f} MB for each function", *soak.wrong[:10], sep="\n")
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
