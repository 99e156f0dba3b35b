"""Random programs compute the same, and make the same calls, with and without compilation."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS

pytestmark = pytest.mark.slow
SIZE = 3


def scaled(x, y):
    return np.float32(0.5) * x + y


@functools.cache
def callbacks(flavor, method):
    """Return the callback in Python and the compiled one."""
    if flavor == "io":
        return [jaxcb.io(scaled, result="x", compile=compiler) for compiler in (None, "numba")]
    made = []
    for compiler in (None, "numba"):
        callback = jaxcb.pure(scaled, result="x", vmap_method=method, compile=compiler)
        callback.defjvp(functools.partial(rule, callback))
        made.append(callback)
    return made


def rule(callback, primals, tangents):
    dx, dy = tangents
    return callback(*primals), np.float32(0.5) * dx + dy


def in_vmap(f):
    return lambda x, y: jax.vmap(f, in_axes=(0, None))(jnp.stack([x, x + 1]), y).sum(0)


def in_other_vmap(f):
    return lambda x, y: jax.vmap(f, in_axes=(None, 0))(x, jnp.stack([y, y + 1, y + 2])).sum(0)


def in_scan(f):
    return lambda x, y: jax.lax.scan(lambda c, n: (f(c, y + n), None), x, jnp.arange(3.0))[0]


def in_while(f):
    def loop(x, y):
        def step(state):
            count, x = state
            return count + 1, f(x, y)

        return jax.lax.while_loop(lambda state: state[0] < 3, step, (0, x))[1]

    return loop


def in_cond(f):
    return lambda x, y: jax.lax.cond(x.sum() > 1, f, lambda x, y: x - y, x, y)


def in_grad(f):
    return lambda x, y: jax.grad(lambda x: f(x, y).sum())(x)


def in_jvp(f):
    return lambda x, y: sum(jax.jvp(f, (x, y), (x, y)))


NESTS = [in_vmap, in_other_vmap, in_scan, in_while, in_cond, jax.jit, jax.checkpoint]
DERIVATIVES = [in_grad, in_jvp]


@st.composite
def programs(draw):
    """Draw a flavor, a vmap method, the nests around the callback, its shape, and jit or eager."""
    flavor = draw(st.sampled_from(["pure", "pure", "io"]))
    # JAX refuses io callbacks in a cond or a while loop under vmap.
    possible = [in_vmap, in_other_vmap, in_scan, jax.jit] if flavor == "io" else NESTS
    nests = draw(st.lists(st.sampled_from(possible), max_size=4))
    if flavor == "pure" and in_while not in nests and draw(st.booleans()):
        nests.insert(draw(st.integers(0, len(nests))), draw(st.sampled_from(DERIVATIVES)))
    # The host function would have to know which axes are those of the batch.
    methods = sorted({*VMAP_METHODS} - {"legacy_vectorized"})
    return flavor, draw(st.sampled_from(methods)), nests, draw(st.sampled_from([(), (SIZE,)]))


def ran(callback, nests, shape, transform):
    """Return the result of a program, the elements and versions of its calls, and statuses."""
    program = functools.reduce(lambda f, nest: nest(f), nests, lambda x, y: callback(x, y))
    x = jnp.linspace(0.25, 1.5, SIZE)[: shape[0] if shape else 1].reshape(shape)
    with jaxcb.record() as r:
        result = np.asarray(transform(program)(x, x + 1))
        jax.effects_barrier()
    calls = sorted((call.element, call.version) for call in r.recording)
    return result, calls, sorted(outcome.status for outcome in r.recording.outcomes)


@pytest.mark.long
@hypothesis.given(programs(), st.sampled_from([jax.jit, lambda f: f]))
@hypothesis.settings(max_examples=30)
def test_compiled_callbacks_compute_and_are_called_like_those_in_python(program, transform):
    flavor, method, nests, shape = program
    made = callbacks(flavor, method)
    python, compiled = (ran(callback, nests, shape, transform) for callback in made)
    np.testing.assert_allclose(compiled[0], python[0], rtol=1e-6)
    assert compiled[1:] == python[1:]
