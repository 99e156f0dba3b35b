"""The docstrings of the decorators say what the code does."""

import re

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS, AxisKind

SHAPES = {
    AxisKind.BATCHED: "``(B, *s)``",
    AxisKind.TILED: "``(B, *s)``",
    AxisKind.SIZE1: "``(1, *s)``",
    AxisKind.LOOPED: "``s``",
    AxisKind.UNBATCHED: "``s``",
}


@pytest.mark.parametrize("method", VMAP_METHODS.values(), ids=VMAP_METHODS)
def test_docstring_of_pure_has_a_row_for_each_vmap_method(method):
    (row,) = re.findall(rf'^ *``"{method.name}"``  +(.*)$', jaxcb.pure.__doc__, re.MULTILINE)
    calls, returned = (
        ("``B``", "the declared shape") if method.looped else ("1", "``(B, *declared)``")
    )
    expected = [calls, SHAPES[method.batched], SHAPES[method.unbatched], returned]
    assert re.split("  +", row) == expected
