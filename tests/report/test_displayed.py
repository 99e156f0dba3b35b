"""A recording or a matrix that is displayed or printed shows its report."""

import jax
import numpy as np
from IPython.core.interactiveshell import InteractiveShell

import jupyter_jaxcb as jaxcb
from tests.interface import MIME_TYPE, Recording, matrix_to_text, to_mimebundle, to_text

double = jaxcb.pure(lambda x: 2 * x, result="x")


def record_of_a_call():
    with jaxcb.record() as r:
        jax.jit(double)(np.float32(1)).block_until_ready()
    return r


def recorded():
    return record_of_a_call().recording


def test_ipython_shows_the_host_trace_without_the_extension():
    r = record_of_a_call()
    formatted = InteractiveShell.instance().display_formatter.format
    assert formatted(r) == formatted(r.recording) == to_mimebundle(r.recording)
    assert {MIME_TYPE, "text/html"} <= set(formatted(r)[0])


def test_marimo_shows_the_widget_of_a_recording():
    """marimo calls `_display_`, and shows the anywidget that it returns."""
    r = record_of_a_call()
    for shown in (r, r.recording):
        widget = shown._display_()
        assert widget.rows == 1
        widget.close()


def test_block_that_has_not_ended_is_shown_as_a_recording_in_progress():
    with jaxcb.record() as r:
        assert InteractiveShell.instance().display_formatter.format(r) == (
            {"text/plain": "<recording in progress>"}, {},
        )  # fmt: skip
        assert r._display_() == "<recording in progress>"


def test_print_of_a_recording_or_a_matrix_is_its_report():
    recording, matrix = recorded(), jaxcb.explain_matrix(double)(np.float32(1))
    assert str(recording) == to_text(recording) and "    1 call" in str(recording)
    assert repr(recording) == "<Recording of 1 host call from 1 site>"
    assert str(matrix) == matrix_to_text(matrix)
    assert repr(matrix).startswith("<Matrix of jit, ")


def test_empty_recording_shows_its_repr():
    words = "<Recording of 0 host calls from 0 sites>"
    assert str(Recording()) == words == repr(Recording())
    assert Recording()._repr_mimebundle_() == ({"text/plain": words}, {})
