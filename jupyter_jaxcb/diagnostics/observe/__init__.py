"""``observe_jax()``: records JAX's built-in callbacks too."""

from ._observe import observe_jax as observe_jax
from ._observe import start_observing as start_observing
from ._observe import stop_observing as stop_observing
