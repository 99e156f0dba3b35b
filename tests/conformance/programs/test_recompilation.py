"""Equal host functions and argument trees reuse one compiled program, even for odd callables."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, TWO


def host(key, *more):
    return np.float32(np.asarray(key).ravel()[0] % 7)


class Model:
    def method(self, key):
        return host(key)

    def __call__(self, key):
        return host(key)


class Unhashable(Model):
    __hash__ = None


class ReturnsArrays(Model):
    """``==`` returns an array, as for NumPy arrays."""

    def __eq__(self, other):
        return np.array([True, False])

    __hash__ = Model.__hash__


class Raises(Model):
    def __eq__(self, other):
        raise RuntimeError("not comparable")

    __hash__ = Model.__hash__


class UnhashableInside(Model):
    """Its type defines a hash, but hashing an instance fails, as for a tuple of lists."""

    def __hash__(self):
        raise TypeError("unhashable contents")


class ReturnsArraysSameHash(ReturnsArrays):
    """All instances have the same hash, and ``==`` returns an array."""

    def __init__(self, shift=0):
        self.shift = np.float32(shift)

    def __call__(self, x):
        return host(x) + self.shift

    def __hash__(self):
        return 1


MODEL, ARRAYS, RAISES, UNHASHABLE = Model(), ReturnsArrays(), Raises(), Unhashable()
SAME = {
    "function": lambda: host,
    "bound method": lambda: MODEL.method,
    "callable": lambda: MODEL,
    "== returns arrays": lambda: ARRAYS,
    "== raises": lambda: RAISES,
}
ODD = {
    "unhashable": lambda: UNHASHABLE,
    "== returns arrays": lambda: ARRAYS,
    "== raises": lambda: RAISES,
    "unhashable inside": UnhashableInside,
    "== returns arrays, same hash": ReturnsArraysSameHash,
    "partial": lambda: functools.partial(host),
}
BINDS = {
    "pure": lambda f, *args, **kwargs: jaxcb.pure_callback(f, SCALAR, *args, **kwargs),
    "io": lambda f, *args, **kwargs: jaxcb.io_callback(f, SCALAR, *args, **kwargs),
    "debug": lambda f, *args, **kwargs: jaxcb.debug_callback(f, *args, **kwargs),
}
flavors = pytest.mark.parametrize("bind", BINDS.values(), ids=BINDS)


@pytest.fixture
def key():
    """A PRNG key: the only kind of argument for which our eager calls are compiled."""
    jax.clear_caches()
    return jax.random.key(1)


@flavors
@pytest.mark.parametrize("function", SAME.values(), ids=SAME)
def test_same_function_called_from_another_line_is_not_compiled_again(
    bind, function, key, compiles
):
    with compiles() as first:
        bind(function(), key)
    with compiles() as second:
        for _ in range(3):
            bind(function(), key)
        bind(function(), key)
    jax.effects_barrier()
    assert first.count >= 1
    assert second.count == 0


@flavors
def test_different_argument_trees_and_functions_are_compiled_separately(bind, key, compiles):
    others = [
        lambda: bind(host, key, 1.0),
        lambda: bind(host, (key,)),
        lambda: bind(host, key=key),
        lambda: bind(Model().method, key),
        lambda: bind(Model(), key),
    ]
    bind(lambda *args, **kwargs: np.float32(0), key)
    for other in others:
        with compiles() as counted:
            other()
        assert counted.count >= 1
    jax.effects_barrier()


def test_equal_static_arguments_are_compiled_once(key, compiles):
    with compiles() as first:
        jaxcb.pure_callback(host, SCALAR, key, "".join(["le", "ft"]))
    with compiles() as second:
        jaxcb.pure_callback(host, SCALAR, key, "".join(["l", "eft"]))
    with compiles() as third:
        jaxcb.pure_callback(host, SCALAR, key, "right")
    assert (first.count >= 1, second.count, third.count >= 1) == (True, 0, True)


@pytest.mark.parametrize("function", ODD.values(), ids=ODD)
def test_odd_callable_works_in_every_program(our_pure, run, function):
    """JAX's caches hash and compare the parameters of binds, which an odd object must not break."""
    f = our_pure(function(), SCALAR, vmap_method="sequential")
    expected = np.float32(2)
    for g in (f, lambda x: f(x), lambda x: f(f(x))):
        assert run(g, TWO) == run(jax.jit(lambda x, g=g: g(x)), TWO) == expected
    np.testing.assert_array_equal(
        run(jax.jit(jax.vmap(lambda x: f(x))), np.float32([1, 9])), [1, 2]
    )


def test_callables_with_equal_hashes_and_array_comparison_are_kept_apart(our_pure, run):
    """JAX's caches compare entries whose hashes are equal."""
    f, g = (our_pure(ReturnsArraysSameHash(shift), SCALAR) for shift in (0, 10))
    key = jax.random.key(1)
    expected = host(jax.random.key_data(key))
    assert (run(lambda: f(key)), run(lambda: g(key))) == (expected, expected + 10)
    program = jax.jit(lambda x: jnp.stack([f(x), g(x)]))
    assert run(program, TWO).tolist() == [2, 12]


@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
def test_program_is_traced_once_for_many_runs(flavor):
    traces = []

    @jax.jit
    def program(x):
        traces.append(None)
        return x, BINDS[flavor](MODEL.method, x)

    for number in range(5):
        jax.block_until_ready(program(np.float32(number)))
    jax.effects_barrier()
    assert len(traces) == 1


def test_cond_takes_branches_whose_callbacks_compare_oddly(our_pure, run):
    """`lax.cond` compares the effects and avals of its branches, not the host functions."""
    f, g = our_pure(ARRAYS, SCALAR), our_pure(RAISES, SCALAR)
    program = jax.jit(lambda x: jax.lax.cond(x > 0, lambda: f(x), lambda: g(x)))
    assert run(program, TWO) == 2
    assert run(program, -TWO) == 5


def test_two_odd_callables_are_kept_apart(our_pure, run):

    class Equal:
        def __init__(self, result):
            self.result = np.float32(result)

        def __call__(self, x):
            return self.result

        def __eq__(self, other):
            return NotImplemented

        __hash__ = Model.__hash__

    f, g = our_pure(Equal(1), SCALAR), our_pure(Equal(2), SCALAR)
    key = jax.random.key(0)
    assert (run(f, key), run(g, key)) == (1, 2)
    assert run(jax.jit(lambda x: jnp.stack([f(x), g(x)])), TWO).tolist() == [1, 2]
