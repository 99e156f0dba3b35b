"""Static checks of host functions.

`_purity` warns about side effects in pure callbacks, `_jax_inside` about JAX in host functions.
Both read bytecode through `_references`; `_writes` reads source code.
"""

from ._jax_inside import JaxInHostFunctionWarning as JaxInHostFunctionWarning
from ._jax_inside import advice_for_jax_inside as advice_for_jax_inside
from ._jax_inside import body_of as body_of
from ._jax_inside import jax_inside as jax_inside
from ._jax_inside import look_at_new_body as look_at_new_body
from ._jax_inside import warn_of_jax_inside_jaxs_own as warn_of_jax_inside_jaxs_own
from ._jax_inside import warn_once as warn_once
from ._purity import ImpureFunctionWarning as ImpureFunctionWarning
from ._purity import impurities as impurities
from ._purity import warn_of_impurity as warn_of_impurity
from ._references import loads as loads
