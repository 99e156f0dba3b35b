"""."""

from ._custom_rules import with_jvp as with_jvp
from ._custom_rules import with_vjp as with_vjp
from ._finite_differences import Bind as Bind
from ._finite_differences import step_sizes as step_sizes
from ._finite_differences import with_differences as with_differences
from ._rule_checks import Rule as Rule
