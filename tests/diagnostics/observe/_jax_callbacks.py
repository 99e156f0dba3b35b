"""A callback of each of JAX's flavors, and helpers to record its host calls."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.interface import summarize

STRUCT = jax.ShapeDtypeStruct((), np.float32)


def double(x):
    return 2 * np.asarray(x)


def double_into(ctx, out, x):
    np.asarray(out)[...] = 2 * np.asarray(x)


def look(x):
    return None


# flavor: a function that calls JAX's callback of that flavor with a float32 scalar
FLAVORS = {
    "jax pure": lambda x: jax.pure_callback(double, STRUCT, x),
    "jax io": lambda x: io_callback(double, STRUCT, x),
    "jax debug": lambda x: jax.debug.callback(look, x),
    "jax buffer": lambda x: buffer_callback(double_into, STRUCT)(x),
}
NAMES = {"jax pure": "double", "jax io": "double", "jax debug": "look", "jax buffer": "double_into"}


def observed(run):
    """Return the result of ``run()`` and its recording, with JAX's callbacks observed."""
    with jaxcb.observe_jax() as recorded:
        result = jax.block_until_ready(run())
    return result, recorded.recording


def site_rows(run):
    """Return (flavor, name, status, calls) of each call site that ``run()`` reaches."""
    _, recording = observed(run)
    return [(s.site.flavor, s.site.function, str(s.status), s.calls) for s in summarize(recording)]


def one():
    return jnp.float32(1)


def line_of(function, text):
    """Return the number of the only line of `function` that contains `text`."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = [offset for offset, line in enumerate(lines) if text in line]
    return first + offset
