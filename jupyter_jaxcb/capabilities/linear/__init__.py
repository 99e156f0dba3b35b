"""Host functions that are linear in some parameters, and their transposes.

`_linear` is what is known of such a function, and how its arguments and those of its transpose
correspond. `_rules` has the jvp and transpose rules of JAX for its calls (`_bound`); `_levels`
applies functions below the vmaps around a call. `_others` differentiates by the other parameters,
by a residual (`_residual`) or a rule of the user (`_own_rule`), `_masks` where a mask is true.
"""

from ._linear import CallTree, Linear, linear_in, transposed_by
from ._own_rule import OwnRule
from ._residual import Residual
from ._rules import jvp, transpose
