"""Mark the host calls of threads that earlier cells started: they are recorded by a later cell."""

from __future__ import annotations

import dataclasses
import threading

from ...recording import QUEUE_THREAD, Recording
from ...report import STARTED


class EarlierThreads:
    """The threads that lived when the running cell began, with the number of the cell before."""

    def __init__(self) -> None:
        self._cells = dict.fromkeys(threading.enumerate(), 0)  # 0: of the kernel

    def begin(self, number: int) -> None:
        """Begin a cell; `number` is that of the cell that has ended last, 0 if unknown."""
        now = threading.enumerate()
        self._cells = {thread: self._cells.get(thread, number) for thread in now}

    def marked(self, recording: Recording) -> Recording:
        """Return `recording` with the cell in the names of these threads, if they make calls.

        Threads of XLA, the queue and executors work for any cell. Nothing is known of threads that
        share a name.
        """
        ours = {QUEUE_THREAD, *(recording.threads[worker.thread] for worker in recording.workers)}
        cells = {
            thread.name: number
            for thread, number in self._cells.items()
            if number and not isinstance(thread, threading._DummyThread) and thread.name not in ours
        }
        names = [
            f"{name}, {STARTED}[{cells[name]}]"
            if name in cells and recording.threads.count(name) == 1
            else name
            for name in recording.threads
        ]
        return dataclasses.replace(recording, threads=tuple(names))
