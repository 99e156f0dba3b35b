"""``observe_jax()``: record JAX's own callbacks too.

`_observe` receives events from the patches of `jax_compat` and replaces each of JAX's
callbacks by a recorded one; `_eager` finds the lines of eager calls.
"""

from ._observe import observe_jax as observe_jax
from ._observe import start_noting as start_noting
from ._observe import start_observing as start_observing
from ._observe import stop_noting as stop_noting
from ._observe import stop_observing as stop_observing
