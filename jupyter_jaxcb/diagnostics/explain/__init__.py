"""``explain()`` and ``explain_matrix()``: compile without running, and report each callback.

`_explain` compiles one program; `_matrix` compiles it under six transformations.
"""

from ._explain import explain
from ._matrix import explain_matrix
