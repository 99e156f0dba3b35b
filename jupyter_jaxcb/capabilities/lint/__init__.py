"""Static checks of host functions.

`_purity` warns about side effects in pure callbacks, `_worker_state` about state of io functions
whose calls leave the process. Both read source code through `_changes`. `_jax_inside` warns about
JAX in host functions, which it finds in the bytecode (`_references`). `_jaxs_own` warns where JAX's
own callbacks give wrong numbers.
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
from ._jaxs_own import (
    FinishedElementsWarning,
    NotVaryingWarning,
    warn_of_finished_elements,
    warn_of_lost_axes,
)
from ._purity import (
    ImpureFunctionWarning,
    impurities,
    is_impure,
    users_function,
    warn_of_impurity,
)
from ._references import loads
from ._worker_state import WorkerStateWarning, warn_of_worker_state
