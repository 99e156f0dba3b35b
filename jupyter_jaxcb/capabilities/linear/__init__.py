"""Host functions that are linear in some parameters, and their transposes.

`_linear` is what the user declares: the parameters, and the transpose. `_rules` has JAX's rules for
the calls, `_by_others` the derivative by the other arguments: a residual, or a rule of the user.
"""

from ._by_others import by_residual, by_rule
from ._linear import Linear, linear_in, transposed_by
from ._rules import jvp, transpose
