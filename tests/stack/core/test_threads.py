"""Reading the frames of all threads never deadlocks on Python 3.11."""

import ast
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupyter_jaxcb
from jupyter_jaxcb.stack.core import frames_of_threads, without_collecting
from tests.stack._interrupts import Interrupts

PACKAGE = Path(jupyter_jaxcb.__file__).parent


def test_no_garbage_is_collected_while_frames_are_made(monkeypatch):
    """A collection could let another thread run and take the lock that this one needs.

    `sys._current_frames` creates one frame object for each other thread.
    """
    collected, seen, thresholds = [], [], gc.get_threshold()
    look, note = sys._current_frames, lambda *reported: collected.append(reported)

    def looked():
        seen.append(gc.isenabled())
        gc.set_threshold(1, 1, 1)  # any new object would collect
        gc.callbacks.append(note)
        try:
            return look()
        finally:
            gc.callbacks.remove(note)
            gc.set_threshold(*thresholds)

    monkeypatch.setattr(sys, "_current_frames", looked)
    assert frames_of_threads()[threading.get_ident()].f_code is looked.__code__
    assert seen == [False] and collected == []
    assert gc.isenabled()


def test_collector_is_as_it_was_after_many_threads_looked():
    def look():
        for _ in range(200):
            frames_of_threads()

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        assert not without_collecting(gc.isenabled)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_interrupt_anywhere_leaves_the_lock_to_other_threads():
    """Also where what was interrupted is dropped by another thread."""
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
    assert len(kept) >= 3


def test_current_frames_is_only_called_while_the_collector_is_off():
    allowed = {"_threads.py", "_ending.py"}  # the latter inside `without_collecting`
    asking = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "_current_frames"
    }
    assert asking == allowed
