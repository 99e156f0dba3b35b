"""JAX's callbacks and ours under the same names, so that the same program can run with both."""

from types import SimpleNamespace

import jax
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb

THEIRS = SimpleNamespace(
    pure_callback=jax.pure_callback, io_callback=io_callback, debug_callback=jax.debug.callback
)
OURS = SimpleNamespace(
    pure_callback=jaxcb.pure_callback,
    io_callback=jaxcb.io_callback,
    debug_callback=jaxcb.debug_callback,
)
VERSION = jax.__version_info__[:2]
