"""Host functions that are linear in some parameters, and their transposes.

`_linear` is what is known of such a function, and how its arguments and those of its transpose
correspond. `_rules` has the rules of JAX for its calls, and derivatives by the other parameters: by
a residual, or a rule of the user, masked where the call is (`_masks`).
"""

from ._linear import Linear, linear_in, transposed_by
from ._rules import OwnRule, Residual, jvp, transpose
