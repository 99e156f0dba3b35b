"""Queued calls under load: each is made once, or counted as dropped.

Round by round, threads run programs whose queued calls are fast, slow or fail, while the queue is
small, calls are dropped, and a program is interrupted. Host functions note their calls; these and
the counts of the recording must add up to the crossings that the programs made.

Run it with ``make soak SECONDS=3600``, or alone: ``python -m tests.performance.soak_queue 600``.
"""

import random
import sys
import threading
import time
from collections import Counter

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import queue

THREADS = 3
STEPS = 60  # of a program
PROGRAMS = 4  # that a thread runs in a round


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
        self.seen, self.failed = [], 0
        self.waiting = self._program(jaxcb.debug(self._log, queued=True))
        self.ordered = self._program(jaxcb.io(self._log, result=None, queued=True, ordered=True))
        self.dropping = self._program(jaxcb.debug(self._log, queued=True, on_full="drop"))

    def _log(self, thread, number):
        self.seen.append((int(thread), int(number)))
        if number % 7 == 0:
            time.sleep(0.0005)
        if number % 37 == 5:
            self.failed += 1
            raise Unlucky(f"call {number}")

    def _program(self, log):
        def body(i, carried):
            thread, first = carried
            log(thread, first + i)
            return carried

        return jax.jit(lambda thread, first: jax.lax.fori_loop(0, STEPS, body, (thread, first))[1])

    def round(self):
        """Run one round and check it."""
        self.seen, self.failed = [], 0
        before = jaxcb.set_queue_limit(self.random.choice([20_000, 60_000, queue.limit_bytes]))
        recorded = jaxcb.record()
        block = recorded.__enter__()
        try:
            self._work()
        finally:
            failures = self._settle()
            recorded.__exit__(None, None, None)
            jaxcb.set_queue_limit(before)
        self._check(block.recording, failures)

    def _work(self):
        threads = [
            threading.Thread(target=self._run, args=(number, self.random.random()))
            for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for _ in range(self.random.randrange(3)):
            time.sleep(0.002)
            self.totals["dropped by us"] += jaxcb.drop_queued()
        for thread in threads:
            thread.join()

    def _run(self, number, seed):
        chosen = random.Random(seed)
        for place in range(PROGRAMS):
            program = chosen.choice([self.waiting, self.ordered, self.dropping])
            first = np.int32(place * STEPS)
            jax.block_until_ready(program(np.int32(number), first))

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
        crossed = THREADS * PROGRAMS * STEPS
        dropped = sum(use.full + use.ended for use in recording.queue)
        errors = int((recording.calls["error"] > 0).sum())
        self.totals.update(
            rounds=1, crossings=crossed, made=len(self.seen), failed=errors, dropped=dropped,
            waits=sum(use.waits for use in recording.queue),
        )  # fmt: skip
        problems = []
        if len(self.seen) + dropped != crossed:
            problems.append(f"{len(self.seen)} made + {dropped} dropped of {crossed}")
        if len(recording) != len(self.seen):
            problems.append(f"{len(recording)} rows of {len(self.seen)} calls")
        if len(set(self.seen)) != len(self.seen):
            problems.append("a call was made twice")
        for thread in range(THREADS):
            own = [number for other, number in self.seen if other == thread]
            if own != sorted(own):
                problems.append(f"thread {thread} is out of order")
        if errors < self.failed or bool(self.failed) != bool(failures):
            problems.append(f"{self.failed} failed, {errors} recorded, {failures} reported")
        self.wrong += [f"round {self.totals['rounds']}: {problem}" for problem in problems]


def main(seconds):
    soak, end = QueueSoak(seed=int(time.time())), time.monotonic() + seconds
    while time.monotonic() < end:
        soak.round()
    print(dict(soak.totals), *soak.wrong[:10], sep="\n")
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
