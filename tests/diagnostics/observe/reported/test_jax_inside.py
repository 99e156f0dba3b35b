"""JAX inside the host function of JAX's own callback is reported, as inside one of ours."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, one
from tests.interface import summarize

CAN_BLOCK = jax.__version_info__ < (0, 12)


def solve(solver, x):
    return solver(np.asarray(x))


jitted = jax.jit(lambda x: x + 1)
# Functions with different code, because each code causes one warning.
BINDS = {
    "jax pure": lambda x: jax.pure_callback(lambda x: jnp.sin(np.asarray(x)), STRUCT, x),
    "jax io": lambda x: io_callback(lambda x: jnp.sin(np.float32(x)), STRUCT, x),
    "jax debug": lambda x: jax.debug.callback(lambda x: [jnp.sin(np.asarray(x))], x),
}


def warned(run):
    """Return the warnings and notes of ``run()``, observed."""
    with warnings.catch_warnings(record=True) as seen, jaxcb.observe_jax() as r:
        warnings.simplefilter("always")
        run()
    assert all(one.category is jaxcb.JaxInHostFunctionWarning for one in seen)
    notes = [note for summary in summarize(r.recording) for note in summary.notes]
    return [str(warning.message) for warning in seen], notes


@pytest.mark.parametrize("flavor", BINDS)
def test_use_of_jax_is_reported_once_when_the_program_is_lowered(flavor):
    seen, notes = warned(lambda: jax.jit(BINDS[flavor]).lower(one()).compile())
    assert len(seen) == CAN_BLOCK
    for message in seen:
        assert message.startswith(f"the {flavor} callback <lambda> (test_jax_inside.py:")
        assert "uses JAX in its host function: jax.numpy.sin, test_jax_inside.py:" in message
    assert any("the host function uses JAX (jax.numpy.sin" in note for note in notes)
    again = jax.jit(lambda x: BINDS[flavor](x + 1))
    assert warned(lambda: again.lower(one()).compile())[0] == []


def test_function_that_a_partial_passes_is_examined():
    host = functools.partial(solve, jitted)
    f = jax.jit(lambda x: jax.pure_callback(host, STRUCT, x))
    _, notes = warned(lambda: f.lower(one()).compile())
    assert any("uses JAX (solver, test_jax_inside.py:" in note for note in notes)


def test_numpy_and_prints_are_not_reported():
    def f(x):
        jax.debug.print("{}", x)
        return jax.pure_callback(lambda x: np.asarray(x), STRUCT, x)

    assert warned(lambda: jax.jit(f).lower(one()).compile()) == ([], [])
