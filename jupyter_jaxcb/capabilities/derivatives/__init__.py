"""Derivative rules of pure callbacks.

`_custom_rules` implements ``defjvp`` and ``defvjp``, and lets a mask change the rules.
``derivative="finite"`` is in `_finite_differences`, ``gradient="theta"`` in `_returned_gradient`;
both have `_flat_rules`.
"""

from ._custom_rules import Gate, jvp_of_arrays, with_jvp, with_vjp
from ._finite_differences import Differences, step_sizes
from ._returned_gradient import ReturnedGradient
