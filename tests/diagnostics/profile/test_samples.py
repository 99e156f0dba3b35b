"""Whose Python a sampled thread runs, by the files of its frames."""

import contextlib
import os
import types

import jax
import numpy as np
import pytest

from jupyter_jaxcb.diagnostics.profile._samples import place_of

USER = "/project/train.py"
JAX = os.path.join(os.path.dirname(jax.__file__), "_src", "api.py")
JAXLIB = "/environment/lib/site-packages/jaxlib/mlir/ir.py"
NUMPY = os.path.join(os.path.dirname(np.__file__), "_core", "fromnumeric.py")
STANDARD = contextlib.__file__
LIBRARY = "/environment/lib/site-packages/optax/update.py"


@pytest.mark.parametrize(
    ("files", "in_jax"),
    [
        ([USER], False),
        ([JAX, USER], True),
        ([JAXLIB, USER], True),
        ([NUMPY, STANDARD, JAX, USER], True),
        ([NUMPY, STANDARD, USER], False),
        ([LIBRARY, JAX, USER], False),
        ([JAX, LIBRARY, USER], True),
    ],
)
def test_jax_runs_if_its_frame_is_the_innermost_but_for_those_that_work_for_their_caller(
    files, in_jax
):
    frame = None
    for line, file in enumerate([USER, JAX, *reversed(files)], start=1):
        code = types.SimpleNamespace(co_filename=file, co_name=f"f{line}")
        frame = types.SimpleNamespace(f_code=code, f_lineno=line, f_back=frame)
    place, found = place_of(frame)
    assert (place.file, place.line, place.function, found) == (USER, 3, "f3", in_jax)
