"""Whose Python a sampled thread runs, by the files of its frames; how much memory is used."""

import contextlib
import ctypes
import os
import sys
import types

import jax
import numpy as np
import pytest

from jupyter_jaxcb.diagnostics.profile import _session
from jupyter_jaxcb.diagnostics.profile._sampler import place_of
from jupyter_jaxcb.diagnostics.profile._session import used_bytes

USER = "/project/train.py"
JAX = os.path.join(os.path.dirname(jax.__file__), "_src", "api.py")
JAXLIB = "/environment/lib/site-packages/jaxlib/mlir/ir.py"
NUMPY = os.path.join(os.path.dirname(np.__file__), "_core", "fromnumeric.py")
STANDARD = contextlib.__file__
LIBRARY = "/environment/lib/site-packages/optax/update.py"


def frame(*files):
    """The innermost frame of a stack; the last file is that of the outermost frame."""
    found = None
    for line, file in enumerate(reversed(files), start=1):
        code = types.SimpleNamespace(co_filename=file, co_name=f"f{line}")
        found = types.SimpleNamespace(f_code=code, f_lineno=line, f_back=found)
    return found


@pytest.mark.parametrize(
    ("files", "in_jax"),
    [
        ([USER], False),
        ([JAX, USER], True),
        ([JAXLIB, USER], True),
        ([NUMPY, STANDARD, JAX, USER], True),
        ([NUMPY, USER], False),
        ([STANDARD, USER], False),
        ([LIBRARY, USER], False),
        ([LIBRARY, JAX, USER], False),
        ([JAX, LIBRARY, USER], True),
    ],
)
def test_jax_runs_if_its_frame_is_the_innermost_but_for_those_that_work_for_their_caller(
    files, in_jax
):
    place, found = place_of(frame(*files, JAX, USER))
    assert found == in_jax
    assert (place.file, place.line, place.function) == (USER, 3, "f3")


def test_thread_without_user_code_has_no_line():
    assert place_of(frame(STANDARD)) == (None, False)
    assert place_of(frame(JAX, STANDARD)) == (None, True)
    assert place_of(None) == (None, False)


class Usage(types.SimpleNamespace):
    """Stands for the module `resource`."""

    RUSAGE_SELF = 0

    def getrusage(self, who):
        assert who == self.RUSAGE_SELF
        return types.SimpleNamespace(ru_maxrss=3_000_000)


@pytest.fixture
def without_figure(monkeypatch):
    """The C library lacks ``mallinfo2``, as musl and older GNU libraries do."""
    monkeypatch.setattr(_session, "resource", Usage())
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="a GNU C library is needed",
)
def test_small_allocations_are_counted_while_they_are_used():
    before = used_bytes()
    pieces = [bytearray(10_000) for _ in range(1000)]
    assert 10e6 <= used_bytes() - before < 20e6
    del pieces
    assert used_bytes() - before < 10e6


@pytest.mark.parametrize(("system", "expected"), [("linux", 3_072_000_000), ("darwin", 3_000_000)])
def test_without_its_figure_the_peak_of_the_process_counts(
    system, expected, without_figure, monkeypatch
):
    """Linux tells it in units of 1024 bytes, macOS in bytes."""
    monkeypatch.setattr(sys, "platform", system)
    assert used_bytes() == expected


def test_system_that_tells_nothing_has_no_figure(monkeypatch):
    monkeypatch.setattr(_session, "resource", None)
    monkeypatch.setattr(sys, "platform", "win32")
    assert used_bytes() is None
