"""Reading the frames of all threads never deadlocks on Python 3.11."""

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from jupyter_jaxcb.stack.trace import frames_of_threads
from tests.stack._interrupts import Interrupts


def test_no_garbage_is_collected_while_frames_are_created(monkeypatch):
    """A collection could let another thread run and take the lock that this thread needs.

    `sys._current_frames` creates one frame object for each other thread.
    """
    collected, seen, thresholds = [], [], gc.get_threshold()
    look, note = sys._current_frames, lambda *reported: collected.append(reported)

    def observed_look():
        seen.append(gc.isenabled())
        gc.set_threshold(1, 1, 1)  # any new object would start a collection
        gc.callbacks.append(note)
        try:
            return look()
        finally:
            gc.callbacks.remove(note)
            gc.set_threshold(*thresholds)

    monkeypatch.setattr(sys, "_current_frames", observed_look)
    assert frames_of_threads()[threading.get_ident()].f_code is observed_look.__code__
    assert seen == [False] and collected == []
    assert gc.isenabled()


def test_interrupt_anywhere_releases_the_lock_for_other_threads():
    """Even if another thread drops the interrupted frames."""
    n, kept = 0, []
    while True:
        n += 1
        interrupts = Interrupts(n)
        try:
            with interrupts:
                frames_of_threads()
        except KeyboardInterrupt as error:
            kept.append(error)  # with its frames
        with ThreadPoolExecutor(1) as other:
            assert other.submit(frames_of_threads).result(timeout=60)
        assert gc.isenabled()
        if interrupts.left > 0:
            break
    assert len(kept) >= 2  # on Python 3.13; older versions check more often
