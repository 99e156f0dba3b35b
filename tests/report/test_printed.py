"""`print` of a recording or a matrix shows its report."""

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recording
from jupyter_jaxcb.report import matrix_to_text, to_text

double = jaxcb.pure(lambda x: 2 * x, result="x")


def test_print_of_a_recording_is_its_report(capsys):
    with jaxcb.record() as r:
        jax.jit(double)(np.float32(1)).block_until_ready()
    print(r.recording)
    assert capsys.readouterr().out == f"{to_text(r.recording)}\n"
    assert "    1 call" in str(r.recording)
    assert repr(r.recording) == "<Recording of 1 host call from 1 site>"


def test_print_of_a_matrix_is_its_table(capsys):
    matrix = jaxcb.explain_matrix(double)(np.float32(1))
    print(matrix)
    assert capsys.readouterr().out == f"{matrix_to_text(matrix)}\n"
    assert repr(matrix).startswith("<Matrix of jit, ")


def test_empty_recording_prints_its_repr():
    assert str(Recording()) == "<Recording of 0 host calls from 0 sites>"
