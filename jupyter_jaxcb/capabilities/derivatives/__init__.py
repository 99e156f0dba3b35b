"""Derivative rules of registered callbacks.

`_custom_rules` implements ``defjvp`` and ``defvjp``, and lets a mask change the rules. The others
are rules of JAX for the calls themselves, by Jacobians (`_jacobians`): those that
``derivative="finite"`` computes (`_finite_differences`), and those that the host function returns
with ``gradient="theta"`` (`_returned_gradient`).
"""

from ._custom_rules import Gate, jvp_of_arrays, with_rule
from ._finite_differences import Differences, step_sizes
from ._returned_gradient import ReturnedGradient
