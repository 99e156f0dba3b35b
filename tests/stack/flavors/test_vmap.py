"""With a `vmap_method` of pure callbacks, one call of io and debug gets the whole batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._vmap_methods import TOGETHER
from tests.conformance._parameters import eager_or_jit

together = pytest.mark.parametrize("method", TOGETHER)
X, Y = np.arange(105, dtype=np.float32).reshape(5, 7, 3), np.arange(7, dtype=np.float32)
REGISTERED = {
    "io": lambda f, **options: jaxcb.io(f, result="x", **options),
    "debug": jaxcb.debug,
    "io_callback": lambda f, **options: lambda x, y: jaxcb.io_callback(f, x, x, y, **options),
    "debug_callback": lambda f, **options: lambda x, y: jaxcb.debug_callback(f, x, y, **options),
}
registered = pytest.mark.parametrize("register", REGISTERED.values(), ids=REGISTERED)


def nested(function):
    """Map over two axes of X, the outer one in the middle, and over Y in the outer vmap alone."""
    return jax.vmap(jax.vmap(function, in_axes=(0, None)), in_axes=(1, 0))


def done(function, *args):
    """Run it, wait for its calls, and return its result."""
    result = jax.block_until_ready(function(*args))
    jax.effects_barrier()
    return result


class Calls(list):
    """The arguments of the calls of `host`, which returns the first one."""

    def host(self, x, y):
        self.append((np.array(x), np.array(y)))
        return x

    def take(self):
        """Return the shapes and values of the arguments, and forget them."""
        taken = [[(x.shape, x.tolist()) for x in call] for call in self]
        self.clear()
        return taken


@pytest.fixture
def calls():
    return Calls()


@eager_or_jit
@together
@registered
def test_one_call_gets_the_batch_that_a_pure_callback_gets(calls, register, method, compiled):
    pure = jaxcb.pure(calls.host, result="x", vmap_method=method)
    expected = done(compiled(nested(pure)), X, Y), calls.take()
    found = done(compiled(nested(register(calls.host, vmap_method=method))), X, Y), calls.take()
    assert found[1] == expected[1]
    assert len(expected[1]) == 1
    if found[0] is not None:
        np.testing.assert_array_equal(found[0], expected[0])


@eager_or_jit
@together
@registered
def test_empty_batch_and_unbatched_arguments_need_no_batch(calls, register, method, compiled):
    f = register(calls.host, vmap_method=method)
    done(compiled(jax.vmap(f)), X[:0, 0], Y[:0])
    assert calls == []
    done(compiled(jax.vmap(lambda _: f(X[0, 0], Y[0]))), X)
    assert [[x.shape for x in call] for call in calls] == [[(3,), ()]]


@registered
def test_vmap_without_a_method_is_refused(calls, register):
    with pytest.raises(NotImplementedError, match="without a vmap_method"):
        nested(register(calls.host, vmap_method=None))(X, Y)
    assert calls == []


@together
@registered
def test_ordered_calls_for_a_batch_are_refused_at_registration(calls, register, method):
    with pytest.raises(ValueError, match="Drop ordered=True for one call for the batch, or vmap_"):
        register(calls.host, ordered=True, vmap_method=method)(X, Y)
    assert calls == []


@pytest.mark.parametrize("register", [jaxcb.debug, REGISTERED["debug_callback"]])
def test_partitioned_calls_for_a_batch_are_refused(calls, register):
    with pytest.raises(ValueError, match="Drop partitioned= for one call for the batch"):
        register(calls.host, partitioned=True, vmap_method="expand_dims")(X, Y)


# Transformations


def test_gradient_gets_the_primal_values_of_the_batch_and_is_not_affected(calls):
    log = jaxcb.debug(calls.host, vmap_method="expand_dims")

    def loss(x, y):
        log(x, y)
        return jnp.sum(jnp.sin(x) * y)

    found = done(jax.jit(nested(jax.grad(loss))), X, Y)
    np.testing.assert_allclose(found, np.cos(X).swapaxes(0, 1) * Y[:, None, None], rtol=1e-5)
    found = done(jax.jit(jax.grad(lambda x: nested(loss)(x, Y).sum())), X)
    np.testing.assert_allclose(found, np.cos(X) * Y[:, None], rtol=1e-5)
    one, other = calls
    for x, y in (one, other):
        np.testing.assert_array_equal(x, X.swapaxes(0, 1))
        np.testing.assert_array_equal(y, Y[:, None])


@pytest.mark.parametrize("policy", [None, jax.checkpoint_policies.everything_saveable])
def test_checkpoint_makes_one_call_where_it_makes_one_for_each_element_by_default(calls, policy):
    def count(method):
        log = jaxcb.debug(calls.host, vmap_method=method)
        body = jax.checkpoint(lambda x, y: (log(x, y), jnp.sin(x) * y)[1], policy=policy)
        done(jax.jit(jax.grad(lambda x: jax.vmap(body)(x, x).sum())), Y)
        return len(calls.take())

    assert count("sequential") == count("expand_dims") * Y.size


@pytest.mark.parametrize("around", ["vmap of scan", "scan of vmap"])
def test_scan_makes_one_call_in_each_iteration(calls, around):
    f = jaxcb.io(calls.host, result="x", vmap_method="expand_dims")
    step = lambda y, x: (y + 1, f(x, y))  # noqa: E731
    if around == "scan of vmap":
        final, ys = done(jax.jit(lambda x, y: jax.lax.scan(jax.vmap(step), y, x)), X[..., 0], Y)
    else:
        scan = jax.vmap(lambda x, y: jax.lax.scan(step, y, x), (1, 0), (0, 1))
        final, ys = done(jax.jit(scan), X[..., 0], Y)
    np.testing.assert_array_equal(final, Y + 5)
    np.testing.assert_array_equal(ys, X[..., 0])
    assert [y[1] for _, y in calls.take()] == [(Y + n).tolist() for n in range(5)]


# Options


@eager_or_jit
@pytest.mark.parametrize("queued", [False, True])
def test_mask_selects_the_batch_elements_of_the_call(calls, queued, compiled):
    log = jaxcb.debug(lambda x: calls.append(x.tolist()), vmap_method="expand_dims", queued=queued)
    f = compiled(jax.vmap(lambda x, limit: log.where(x > limit, x), in_axes=(0, None)))
    with jaxcb.record() as r:
        done(f, Y, 3.0)
        done(f, Y, 9.0)
    assert calls == [[4.0, 5.0, 6.0]]
    recording = r.recording
    assert [
        sum(getattr(mask, name) for mask in recording.masks) for name in ("needed", "elements")
    ] == [3, 14]
    assert len(recording) == 1


# Reports
