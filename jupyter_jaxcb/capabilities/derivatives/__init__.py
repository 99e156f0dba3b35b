"""Derivative rules of pure callbacks.

`_custom_rules` implements ``defjvp`` and ``defvjp``, `_rule_checks` validates what rules return,
and `_finite_differences` implements ``derivative="finite"``. `_gate` lets a mask change the rules.
"""

from ._custom_rules import with_jvp as with_jvp
from ._custom_rules import with_vjp as with_vjp
from ._finite_differences import BindCall as BindCall
from ._finite_differences import step_sizes as step_sizes
from ._finite_differences import with_differences as with_differences
from ._gate import Gate as Gate
from ._rule_checks import Rule as Rule
from ._rule_checks import plain as plain
