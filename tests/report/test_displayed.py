"""A recording shows its host trace in notebooks without the extension."""

import jax
import numpy as np
from IPython.core.interactiveshell import InteractiveShell

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recording
from jupyter_jaxcb.report import MIME_TYPE, to_mimebundle

double = jaxcb.pure(lambda x: 2 * x, result="x")


def recorded():
    with jaxcb.record() as r:
        jax.jit(double)(np.float32(1)).block_until_ready()
    return r.recording


def test_ipython_shows_the_host_trace_without_the_extension():
    recording = recorded()
    data, metadata = InteractiveShell.instance().display_formatter.format(recording)
    assert (data, metadata) == to_mimebundle(recording)
    assert {MIME_TYPE, "text/html"} <= set(data)


def test_empty_recording_shows_its_repr():
    data, metadata = Recording()._repr_mimebundle_()
    assert (data, metadata) == ({"text/plain": repr(Recording())}, {})


def test_marimo_shows_the_widget_of_a_recording():
    """marimo calls `_display_`, and shows the anywidget that it returns."""
    widget = recorded()._display_()
    assert widget.rows == 1
    widget.close()
