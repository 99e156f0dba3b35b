"""Derivative rules of pure callbacks.

`_custom_rules` implements ``defjvp`` and ``defvjp``, and lets a mask change the rules;
`_rule_checks` validates what rules return. ``derivative="finite"`` is in `_finite_differences`.
"""

from ._custom_rules import Gate as Gate
from ._custom_rules import with_jvp as with_jvp
from ._custom_rules import with_vjp as with_vjp
from ._finite_differences import BindCall as BindCall
from ._finite_differences import step_sizes as step_sizes
from ._finite_differences import with_differences as with_differences
from ._rule_checks import Rule as Rule
from ._rule_checks import plain as plain
