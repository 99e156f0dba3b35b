"""Queued calls under load: each is made once, or counted as dropped.

Round by round, threads run programs whose queued calls are fast, slow or fail, alone and in
batches, while the queue is small and calls are dropped. Some recordings end before their calls are
made. Host functions note their calls; these and the counts of the recording must add up to the
calls of the programs. Threads, files and memory must not grow.

Run it with ``make soak SECONDS=3600``, or alone: ``python -m tests.performance.soak_queue 600``.
"""

import os
import random
import sys
import threading
import time
from collections import Counter

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue

from .soak import resident_mb

THREADS = 3
STEPS = 60  # of a program
PROGRAMS = 4  # that a thread runs in a round
BATCH = 5  # calls of a step with vmap
WARM_ROUNDS = 20
MAY_GROW_MB = 30


class Unlucky(Exception):
    """Raised by host functions on purpose."""


class QueueSoak:
    """The programs and what their calls noted.

    Attributes:
        totals: numbers of crossings, of calls by what became of them, and of rounds.
        wrong: messages about rounds in which calls were lost, made twice or out of order.
    """

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.totals = Counter()
        self.wrong = []
        self.seen, self.failed, self.crossed = [], 0, 0
        self.lock, self.drops = threading.Lock(), 0
        self.waiting = self._program(jaxcb.debug(self._log, queued=True))
        self.ordered = self._program(jaxcb.io(self._log, result=None, queued=True, ordered=True))
        self.dropping = self._program(jaxcb.debug(self._log, queued=True, on_full="drop"))
        self.batched = self._program(jaxcb.debug(self._log, queued=True), BATCH)
        self.unbatched = (self.waiting, self.ordered, self.dropping)

    def _log(self, thread, number):
        self.seen.append((int(thread), int(number)))
        if number % 7 == 0:
            time.sleep(0.0005)
        if number % 37 == 5:
            self.failed += 1
            raise Unlucky(f"call {number}")

    def _program(self, log, batch=None):
        def body(i, carried):
            thread, first = carried
            if batch is None:
                log(thread, first + i)
            else:
                elements = first + i * batch + np.arange(batch)
                jax.vmap(log, in_axes=(None, 0))(thread, elements)
            return carried

        return jax.jit(lambda thread, first: jax.lax.fori_loop(0, STEPS, body, (thread, first))[1])

    def round(self):
        """Run one round and check it."""
        self.seen, self.failed, self.crossed = [], 0, 0
        before = jaxcb.set_queue_limit(self.random.choice([20_000, 60_000, queue.limit_bytes]))
        early = self.random.random() < 0.3
        recorded = jaxcb.record()
        block = recorded.__enter__()
        try:
            self._work()
        finally:
            failures = [] if early else self._settle()
            recorded.__exit__(KeyError, KeyError(), None)  # it does not wait
            failures += self._settle()
            jaxcb.set_queue_limit(before)
        self._check(block.recording, failures)

    def _work(self):
        threads = [
            threading.Thread(target=self._run, args=(number, self.random.random()))
            for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        self.drops = self.random.randrange(3)
        for _ in range(self.drops):
            time.sleep(0.002)
            self.totals.update(drops=1, dropped_by_us=jaxcb.drop_queued())
        for thread in threads:
            thread.join()

    def _run(self, number, seed):
        chosen = random.Random(seed)
        for place in range(PROGRAMS):
            program = chosen.choice([*self.unbatched, self.batched])
            first = np.int32(place * STEPS * BATCH)
            jax.block_until_ready(program(np.int32(number), first))
            with self.lock:
                self.crossed += STEPS * (BATCH if program is self.batched else 1)

    def _settle(self):
        """Wait for all calls; return the errors that barriers raised."""
        found = []
        while True:
            try:
                jax.effects_barrier()
            except jax.errors.JaxRuntimeError as error:
                found.append(jaxcb.host_error(error))
            except BaseException as error:  # of the call that `drop_queued` ended
                found.append(error)
            else:
                return found

    def _check(self, recording, failures):
        fates = {
            fate: sum(getattr(use, fate) for use in recording.queue)
            for fate in ("full", "ended", "skipped", "left")
        }
        errors, rows = int((recording.calls["error"] > 0).sum()), len(recording)
        self.totals.update(
            rounds=1, calls=self.crossed, made=len(self.seen), failed=errors, **fates,
            waits=sum(use.waits for use in recording.queue),
        )  # fmt: skip
        problems = []
        if rows + sum(fates.values()) != self.crossed:
            problems.append(f"{rows} rows and {fates} of {self.crossed} calls")
        # A call that was dropped before its first line has a row, but is not noted.
        if not fates["left"] and not 0 <= rows - len(self.seen) <= self.drops:
            problems.append(f"{rows} rows of {len(self.seen)} calls")
        if len(set(self.seen)) != len(self.seen):
            problems.append("a call was made twice")
        for thread in range(THREADS):
            own = [number for other, number in self.seen if other == thread]
            if own != sorted(own):
                problems.append(f"thread {thread} is out of order")
        lost = not fates["left"] and errors < self.failed
        if lost or bool(self.failed) != bool(failures):
            problems.append(f"{self.failed} failed, {errors} recorded, {failures} reported")
        self.wrong += [f"round {self.totals['rounds']}: {problem}" for problem in problems]


def _left():
    """Return the numbers of threads and of open files."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def main(seconds):
    soak, end = QueueSoak(seed=int(time.time())), time.monotonic() + seconds
    for _ in range(WARM_ROUNDS):
        soak.round()
    left, megabytes = _left(), resident_mb()
    while time.monotonic() < end:
        soak.round()
    grown = resident_mb() - megabytes
    if _left() != left:
        soak.wrong.append(f"threads and files: {left} before, {_left()} after")
    if grown > MAY_GROW_MB:
        soak.wrong.append(f"memory grew by {grown:.0f} MB")
    print(dict(soak.totals), f"{grown:+.1f} MB", *soak.wrong[:10], sep="\n")
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
