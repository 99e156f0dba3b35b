"""The analysis of a program takes time linear in its number of call sites.

Work is counted in lines that this package's code runs, the same on every machine. Python reports a
line again for each turn of a loop, also of one on a single line, so no loop is missed.
"""

import gc
import os
import sys

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from jupyter_jaxcb.stack.trace import _site

OUR_FILES = os.path.dirname(jaxcb.__file__) + os.sep
X = np.float32(1)
LINES = {
    "one after the other": "x = p(x + 1)",
    "each in a loop": "x = jax.lax.fori_loop(0, 3, lambda i, x: p(x), x)",
    "each in a branch": "x = jax.lax.cond(x > 0, lambda x: p(x), lambda x: x, x)",
    "each in an inner jit": "x = jax.jit(lambda x: p(x) + 1)(x)",
    "each unused": "p(x)",
}


class Work:
    """Count the lines that functions of this package run inside the block."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        gc.collect()
        gc.disable()  # the finalizers of earlier tests' programs are not counted
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *error):
        sys.settrace(self._before)
        gc.enable()

    def _on_call(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(OUR_FILES):
            return None
        self.count += 1
        return self._on_line

    def _on_line(self, frame, event, argument):
        self.count += 1
        return self._on_line


def work(line, count):
    """Count the lines it takes to compile a program with `count` call sites."""
    p = jaxcb.pure(np.sin, result="x")
    source = "\n    ".join(["def f(x):", *[line] * count, "return x"])
    space = {"p": p, "jax": jax}
    exec(compile(source, "many_call_sites.py", "exec"), space)
    with jaxcb.record() as r, Work() as counted:
        jax.jit(space["f"]).lower(X).compile()
    assert len(summarize(r.recording)) == count
    return counted.count


@pytest.mark.long
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_work_for_a_program_is_linear_in_its_call_sites(line):
    work(line, 2)  # work that is only done once
    few, more, many = (work(line, count) for count in (10, 30, 50))
    assert many - more < 1.05 * (more - few)


def test_positions_of_code_are_computed_once_for_all_its_call_sites():
    _site._positions.cache_clear()
    work(LINES["one after the other"], 50)
    found = _site._positions.cache_info()
    assert found.hits >= 49
    assert found.misses < 10
