"""A mixed load for an hour: no host call is lost, and memory does not grow.

Round by round, threads run vmaps with every method and with executors, host functions that raise or
are interrupted, new bodies of registered functions, ordered and unordered loops, buffers, taps,
drop-ins, JAX's callbacks and nested recordings. Host functions count their calls, and the recording
of a round must have exactly these calls. Some rounds are not recorded, some observe JAX, and some
begin with empty caches.

Run it with ``make soak SECONDS=3600``. It exits with 1 if a call was lost or memory grew; after
Ctrl-C it prints the results so far.
"""

import argparse
import collections
import gc
import os
import sys
import threading
import time
import traceback

import jax
import numpy as np

import jupyter_jaxcb as jaxcb

try:
    from ._load import Counts, Load
except ImportError:
    from _load import Counts, Load

STEPS = 12  # of each thread in a round
KINDS = ("recorded", "observed", "recorded", "not recorded")
FORGET = 20  # rounds after which JAX's caches are cleared
WARM = 0.5  # fraction of the time in which memory may grow
MAY_GROW_MB = 60  # limit after the warm-up, by a line fitted to the measurements


class Soak:
    """The threads, their counts, and the measurements.

    Attributes:
        lost: messages about rounds whose recording differs from the counts.
        memory: rows of seconds since the start, megabytes of this process, and Python objects.
    """

    def __init__(self, threads=3):
        self.count = Counts()
        self.loads = [Load(number, self.count) for number in range(threads)]
        self.rounds = collections.Counter()
        self.calls = 0
        self.interrupted = 0
        self.lost = []
        self.memory = []
        self.began = time.monotonic()

    def round(self, number):
        kind = KINDS[number % len(KINDS)]
        before = self.count.now()
        if kind == "not recorded":
            self.work(observed=False)
        else:
            with jaxcb.record() if kind == "recorded" else jaxcb.observe_jax() as recorded:
                self.work(observed=kind == "observed")
            self.compare(number, kind, recorded.recording, self.count.now() - before)
        self.interrupt()
        self.rounds[kind] += 1
        if number % FORGET == FORGET - 1:
            jax.clear_caches()
            gc.collect()
            seconds = time.monotonic() - self.began
            self.memory.append((seconds, resident_mb(), len(gc.get_objects())))

    def work(self, observed):
        """Run all threads at once, and wait for them."""
        failed = []

        def run(load):
            try:
                load.run(STEPS, observed)
            except BaseException:
                failed.append(traceback.format_exc())

        threads = [threading.Thread(target=run, args=(load,)) for load in self.loads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise AssertionError("\n".join(failed))

    def compare(self, number, kind, recording, ran):
        recorded = collections.Counter(
            recording.lowered[row].site.function for row in recording.calls["lowered"].tolist()
        )
        self.calls += sum(ran.values())
        if recorded != ran or recording.overflow:
            self.lost.append(
                f"round {number}, {kind}: ran {ran - recorded}, only recorded {recorded - ran}"
            )

    def interrupt(self):
        """Interrupt a recorded block while its program is running."""
        load = self.loads[0]
        try:
            with jaxcb.record():
                load.scanned(np.float32(0), 7)
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.interrupted += 1
        load.loop()  # later programs work

    def report(self):
        done = sum((load.done for load in self.loads), collections.Counter())
        yield f"{sum(self.rounds.values())} rounds: {dict(self.rounds)}"
        yield f"{sum(done.values())} steps: {dict(sorted(done.items()))}"
        yield f"{self.calls:,} host calls in recorded rounds, {len(self.lost)} rounds disagree"
        yield f"{self.interrupted} interrupted blocks"
        yield from self.lost[:10]

    def growth(self):
        """Return a sentence on each measure after the warm-up, and whether memory grew too much."""
        if len(self.memory) < 8:
            count = f"{len(self.memory)} of at least 8 measurements"
            return [f"too short to tell whether memory grows: {count}"], False
        table = np.array(self.memory)
        seconds, *measures = table[table[:, 0] > WARM * table[-1, 0]].T
        lines = []
        for name, measured in zip(("MB", "Python objects"), measures, strict=True):
            slope = np.polyfit(seconds, measured, 1)[0]
            lines.append(
                f"{measured[0]:,.0f} {name} after the warm-up, {measured[-1]:,.0f} at the end; a "
                f"fitted line grows by {slope * 3600:+,.1f} per hour"
            )
        grown = np.polyfit(seconds, measures[0], 1)[0] * (seconds[-1] - seconds[0])
        return lines, bool(grown > MAY_GROW_MB)

    def verdict(self):
        """Print the results; return the exit status."""
        lines, grown = self.growth()
        print(*self.report(), *lines, sep="\n")

        problems = ["calls were lost, or recorded but not made"] * bool(self.lost)
        problems += [f"memory grew by more than {MAY_GROW_MB} MB after the warm-up"] * grown
        print(f"failed: {' and '.join(problems)}" if problems else "passed")
        return int(bool(problems))


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--threads", type=int, default=3)
    arguments = parser.parse_args()
    print(
        f"{arguments.seconds:g} s of work in {arguments.threads} threads: recordings must have "
        f"as many calls as the host functions count, and memory may grow by {MAY_GROW_MB} MB after "
        "half of the time",
        flush=True,
    )
    soak, number = Soak(arguments.threads), 0
    try:
        while time.monotonic() - soak.began < arguments.seconds:
            soak.round(number)
            number += 1
            if number % 200 == 0:
                print(f"{soak.memory[-1][0]:,.0f} s", *soak.report(), sep="\n  ", flush=True)
                print(f"  {soak.memory[-1][1]:,.0f} MB", flush=True)
    except KeyboardInterrupt:
        print("interrupted early")
    sys.exit(soak.verdict())


if __name__ == "__main__":
    main()
