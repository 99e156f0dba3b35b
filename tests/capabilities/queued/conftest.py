"""A host function that waits, so that the queue fills behind it."""

import threading

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import queue_limit_bytes


class Gate:
    """A queued call that runs until `open`; what is queued meanwhile stays in the queue."""

    _opened = threading.Event()

    def close(self):
        """Make the call, and wait until it runs."""
        entered, opened = threading.Event(), threading.Event()
        jaxcb.debug_callback(lambda: (entered.set(), opened.wait(60)), queued=True)
        self._opened = opened
        assert entered.wait(60)

    def open(self):
        self._opened.set()


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()
    jax.effects_barrier()


@pytest.fixture
def limit():
    """Set the queue's limit for one test."""
    before = queue_limit_bytes()
    yield jaxcb.set_queue_limit
    jaxcb.set_queue_limit(before)
