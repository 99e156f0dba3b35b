"""``explain()`` and ``explain_matrix()``: compile, do not run, and report what became of each callback."""

from ._explain import explain as explain
from ._matrix import explain_matrix as explain_matrix
