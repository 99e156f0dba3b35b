"""``observe_jax()``: record JAX's own callbacks too.

`_observe` receives events from the patches of `jax_compat` and replaces each of JAX's
callbacks by a recorded one; `_eager` finds the lines of eager calls.
"""

from ._observe import observe_jax, start_noting, start_observing, stop_noting, stop_observing
