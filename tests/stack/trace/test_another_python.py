"""Callbacks work on a Python that nobody has tried, without what docs/limits.md says is lost."""

import sys
from pathlib import Path

import pytest

from jupyter_jaxcb.stack.trace import IS_TRIED

from . import another_python

PROGRAM = Path(another_python.__file__)
MONITORED = sys.version_info >= (3, 12)
LOST = {
    "fast_path": ["NoneType", "KeyError"],
    "entry": 0,  # with a check for signals
}


@pytest.fixture(scope="module")
def complete(in_process):
    """Return what callbacks do on this Python."""
    return in_process(PROGRAM).value


def test_everything_works_on_a_python_that_was_tried(complete):
    assert IS_TRIED
    assert {kind: complete[kind] for kind in LOST} == {
        "fast_path": ["KeyError" if MONITORED else "NoneType", "KeyError"],
        "entry": 2,
    }
    pressed = "KeyboardInterrupt"
    assert complete["ends_programs"] == ["EndedError", 1, 0.5]
    assert complete["interrupts"] == [[pressed, pressed, 0.5, 0.5, 0.5, pressed], 6]
    assert complete["frames_of_an_error"] == ["<lambda>", "layer", "fails"]
    assert complete["threads"] == [[0.0, 2.0, 4.0], 3, True]


def test_another_python_lacks_only_what_is_said(complete, in_process):
    assert in_process(PROGRAM, "3.15").value == {**complete, **LOST}
