"""Derivative rules of pure callbacks.

`_custom_rules` implements ``defjvp`` and ``defvjp``, and lets a mask change the rules;
`_rule_checks` validates what rules return. ``derivative="finite"`` is in `_finite_differences`,
``gradient="theta"`` in `_returned_gradient`.
"""

from ._custom_rules import Gate, with_jvp, with_vjp
from ._finite_differences import BindCall, step_sizes, with_differences
from ._returned_gradient import ReturnedGradient
from ._rule_checks import Rule, checked_jvp, plain
