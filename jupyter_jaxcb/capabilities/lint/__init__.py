"""Static checks of host functions.

`_purity` warns about side effects in pure callbacks, `_jax_inside` about JAX in host functions.
Both read bytecode through `_references`; `_writes` reads source code. `_not_varying` warns about
JAX's own callbacks in a ``shard_map``.
"""

from ._jax_inside import (
    JaxInHostFunctionWarning,
    advice_for_jax_inside,
    body_of,
    jax_inside,
    look_at_new_body,
    warn_of_jax_inside_jaxs_own,
    warn_once,
)
from ._not_varying import NotVaryingWarning, warn_of_lost_axes
from ._purity import (
    ImpureFunctionWarning,
    impurities,
    is_impure,
    users_function,
    warn_of_impurity,
)
from ._references import loads
