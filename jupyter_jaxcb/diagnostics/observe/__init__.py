"""``observe_jax()``: records JAX's built-in callbacks too.

`_observe` listens to the patches of `stack.jax_compat`, and puts a recorded call in the place of
each built-in one; `_eager` finds the line of a call that no program holds.
"""

from ._observe import observe_jax as observe_jax
from ._observe import start_observing as start_observing
from ._observe import stop_observing as stop_observing
