"""Reading the frames of all threads never deadlocks on Python 3.11."""

import ast
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupyter_jaxcb
from jupyter_jaxcb.stack.trace import frames_of_threads, without_collecting
from tests._threads import in_threads
from tests.stack._interrupts import Interrupts

PACKAGE = Path(jupyter_jaxcb.__file__).parent


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


def test_collector_keeps_its_state_when_many_threads_read_frames():
    def look():
        for _ in range(200):
            frames_of_threads()

    in_threads(lambda _: look(), range(8))
    assert gc.isenabled()
    gc.disable()
    try:
        assert not without_collecting(gc.isenabled)
        assert not gc.isenabled()
    finally:
        gc.enable()


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


def test_current_frames_is_only_called_while_the_collector_is_disabled():
    allowed = {"_threads.py", "_ending.py", "_cpu.py"}  # the last two inside `without_collecting`
    callers = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "_current_frames"
    }
    assert callers == allowed
