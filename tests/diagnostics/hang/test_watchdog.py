"""The watchdog tells once when no host call returns, why, and tells when one does."""

import queue
import re
import socket
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import HangKind, Watchdog

S = jax.ShapeDtypeStruct((), np.float32)
SECONDS = 0.4


class Watched:
    """A watchdog, and what it told."""

    def __init__(self):
        self.told = queue.Queue()
        self.moved = queue.Queue()
        self.dog = Watchdog(SECONDS, self.told.put, lambda: self.moved.put(True))


@pytest.fixture
def watched():
    found = Watched()
    with found.dog:
        yield found


def run_on_a_thread(host):
    """Start a program that calls `host` on another thread."""
    program = jax.jit(lambda x: jaxcb.pure_callback(host, S, x))
    thread = threading.Thread(target=lambda: jax.block_until_ready(program(np.float32(1))))
    thread.start()
    return thread


def test_call_that_waits_for_a_lock_is_told_once_with_its_line_and_then_that_it_moved(watched):
    lock = threading.Lock()

    def waits(x):
        with lock:
            return x

    with lock:
        thread = run_on_a_thread(waits)
        hang = watched.told.get(timeout=60)
        assert hang.kind is HangKind.LOCK
        line = waits.__code__.co_firstlineno + 1
        wanted = rf"waits \(pure, test_watchdog\.py:\d+\) .* test_watchdog\.py:{line}, 'with lock:'"
        assert re.search(wanted, hang.text)
        assert hang.seconds >= SECONDS
        assert f"line {line}, in waits\n    with lock:" in hang.stacks
        assert watched.moved.empty()
    watched.moved.get(timeout=60)
    thread.join()
    assert watched.told.empty()


def test_calls_that_wait_at_the_same_line_are_told_in_one_paragraph():
    lock, told = threading.Lock(), queue.Queue()

    def waits(x):
        with lock:
            return x

    def number_of_calls_at_the_lock():
        line = waits.__code__.co_firstlineno + 1
        frames = sys._current_frames().values()
        return sum(one.f_code is waits.__code__ and one.f_lineno == line for one in frames)

    with lock:
        threads = [run_on_a_thread(waits), run_on_a_thread(waits)]
        while number_of_calls_at_the_lock() < 2:
            time.sleep(0.01)
        with Watchdog(SECONDS, told.put):
            hang = told.get(timeout=60)
        assert hang.text.count("waits (pure, test_watchdog.py:") == 1
        assert hang.stacks.count(", in waits") == 2
    for thread in threads:
        thread.join()


def test_calls_that_return_are_no_hang():
    """Another call is running at each look, for much longer than the watchdog's seconds."""
    told, begun, ends, over = queue.Queue(), queue.Queue(), queue.Queue(), threading.Event()
    left = list(range(10))

    def waits(x):
        begun.put(True)
        ends.get(timeout=60)
        return x

    def look():
        if left:
            left.pop()
            ends.put(True)
            begun.get(timeout=60)
        else:
            over.set()

    def run():
        for _ in range(11):
            jax.block_until_ready(program(np.float32(1)))

    program = jax.jit(lambda x: jaxcb.pure_callback(waits, S, x))
    thread = threading.Thread(target=run)
    thread.start()
    begun.get(timeout=60)
    with Watchdog(SECONDS, told.put, looks=look):
        assert over.wait(60)
    ends.put(True)
    thread.join()
    assert told.empty()


@pytest.mark.kept
def test_function_that_jax_traces_in_a_host_function_is_no_deadlock(watched):
    done = threading.Event()

    def traced(x):
        while not done.is_set():
            time.sleep(0.01)
        return x

    def traces(x):
        jax.eval_shape(traced, x)
        return x

    thread = run_on_a_thread(traces)
    hang = watched.told.get(timeout=60)
    done.set()
    thread.join()
    assert (hang.kind, hang.certain) == (HangKind.UNKNOWN, False)
    assert "it waits at test_watchdog.py:" in hang.text and "'time.sleep(0.01)'" in hang.text


@pytest.mark.kept
def test_call_that_passes_an_array_on_is_not_certain_to_be_a_deadlock(watched):
    """As one that sends it to another process."""
    array = jnp.zeros(10**6)

    def sends(x):
        ours.sendall(array)
        return x

    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = run_on_a_thread(sends)
        hang = watched.told.get(timeout=60)
        left = array.nbytes
        while left:
            left -= len(theirs.recv(left))
        thread.join()
    assert not hang.certain


@pytest.mark.kept
def test_watchdog_of_an_hour_looks_every_second():
    """What it tells is not late by a share of the hour."""
    looks = queue.Queue()
    with Watchdog(3600, queue.Queue().put, looks=lambda: looks.put(True)):
        for _ in range(3):
            looks.get(timeout=60)


def test_call_that_computes_is_told_as_slow(watched):
    done = threading.Event()

    def computes(x):
        while not done.is_set():
            x = x + 1
        return np.float32(x)

    thread = run_on_a_thread(computes)
    hang = watched.told.get(timeout=60)
    done.set()
    thread.join()
    assert hang.kind is HangKind.SLOW
    assert re.search(r"it computes at test_watchdog\.py:\d+, ", hang.text)


@pytest.mark.long
def test_thread_that_held_the_gil_is_named():
    """It holds the GIL for longer than a second, between two looks of the watchdog."""
    done, inside, looks, held = (threading.Event() for _ in range(4))
    told = queue.Queue()

    def sleeps(x):
        inside.set()
        while not done.is_set():
            time.sleep(0.01)
        return x

    def look():
        looks.set()
        held.wait()

    thread = run_on_a_thread(sleeps)
    inside.wait()
    with Watchdog(SECONDS, told.put, looks=look):
        looks.wait()
        sum(range(2 * 10**8))
        held.set()
        hang = told.get(timeout=60)
    done.set()
    thread.join()
    assert hang.kind is HangKind.GIL
    assert "waited for the GIL, which MainThread held; that is now at test_watch" in hang.text
