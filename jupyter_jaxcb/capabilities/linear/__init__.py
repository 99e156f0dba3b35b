"""Host functions that are linear in some parameters, and their transposes.

`_linear` is what is known of such a function, and how its arguments and those of its transpose
correspond. `_rules` has the jvp and transpose rules of JAX for its calls, `_levels` applies
functions below the vmaps around a call, and `_residual` differentiates by the other parameters.
"""

from ._linear import Linear, linear_in, transposed_by
from ._rules import jvp, transpose
