"""Static checks of host functions.

`_effects` warns about side effects in pure callbacks, and about state of io functions whose calls
leave the process; `_jax_inside` warns about JAX in host functions. Both read functions through
`_body`, without running them. `_jaxs_own` warns where JAX's own callbacks give wrong numbers.
"""

from ._body import reached
from ._effects import (
    ImpureFunctionWarning,
    WorkerStateWarning,
    impurities,
    is_impure,
    users_function,
    warn_of_impurity,
    warn_of_worker_state,
)
from ._jax_inside import (
    JaxInHostFunctionWarning,
    advice_for_jax_inside,
    jax_inside,
    look_at_new_body,
    warn_of_jax_inside_jaxs_own,
    warn_once,
)
from ._jaxs_own import (
    FinishedElementsWarning,
    NotVaryingWarning,
    warn_of_finished_elements,
    warn_of_lost_axes,
)
