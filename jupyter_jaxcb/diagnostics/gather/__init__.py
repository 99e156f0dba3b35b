"""``gather()``: one recording of several processes, met over `jax.distributed`."""

from ._gather import gather as gather
