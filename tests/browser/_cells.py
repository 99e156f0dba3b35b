"""Cells that several tests run."""

LOAD = """%load_ext jupyter_jaxcb
import jax, jax.numpy as jnp, numpy as np, os, threading"""
DOUBLE = """%%jax_callback pure --result x --vmap-method expand_dims
def double(x):
    return 2 * x"""
USE = """@jax.jit
def f(x):
    lost = double(x)
    return double(x + 1)
f(1.0);"""
ELEMENTS = "y = jax.vmap(double)(jnp.arange(5.0))"
WAITS = """%%jax_callback io --result x
def step(x):
    while x >= 300 and not os.path.exists(path):
        threading.Event().wait(0.01)
    return x"""


def runs(path):
    """Return a cell whose host calls block, from the 301st on, until the file `path` exists."""
    return f"""path = {str(path)!r}
loop = lambda x: jax.lax.fori_loop(0, 400, lambda i, y: step(y) + 1, x)
jax.jit(loop)(0.0).block_until_ready();"""
