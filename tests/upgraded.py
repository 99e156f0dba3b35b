"""Tests with the replacements of `checkpoint`, `custom_jvp` and `custom_vjp` that JAX prepares.

JAX 0.12 has them behind flags. ``make test-latest`` runs the tests of the stack with the flags too.
``upgraded.txt`` lists what fails then and only JAX can mend; each must fail, or the list is wrong.
"""

import functools
from pathlib import Path

import jax
import pytest

FLAGS = ("jax_remat3", "jax_custom_vjp3", "jax_custom_jvp3")
UPGRADED = any(getattr(jax.config, flag, False) for flag in FLAGS)
LIST = Path(__file__).with_suffix(".txt")


@functools.cache
def expected_failures():
    """Return the reason of each listed test, by its id."""
    reasons, reason = {}, ""
    for line in LIST.read_text("utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            reasons[line] = reason
    return reasons


def mark(items):
    """Mark the listed tests: they must fail."""
    for item in items if UPGRADED else ():
        if item.nodeid in expected_failures():
            item.add_marker(pytest.mark.xfail(reason=expected_failures()[item.nodeid], strict=True))
