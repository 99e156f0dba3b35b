"""."""

from ._explain import explain as explain
from ._matrix import explain_matrix as explain_matrix
