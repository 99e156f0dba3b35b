"""Correct derivative rules have no findings, even for rough functions; wrong rules have one."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

from ._planted import X, pure
from .test_check import only


def ruled(function, derivative):
    callback = jaxcb.pure(lambda x: function(x), result="x")
    callback.defjvp(lambda p, t: (callback(*p), derivative(p[0], t[0])))
    return callback


def noisy(amplitude):
    """Return the sine plus noise that depends on nothing but the argument."""

    def function(x):
        drawn = [zlib.crc32(np.float64(value).tobytes()) / 2**32 - 0.5 for value in np.ravel(x)]
        return np.sin(x) + amplitude * np.reshape(drawn, np.shape(x))

    return function


def bisected(x):
    root = lambda a: scipy.optimize.bisect(lambda z: z**3 - a, 0, 10, xtol=1e-4)  # noqa: E731
    return np.reshape([root(a) for a in np.ravel(x)], np.shape(x))


TAU = 2 * np.pi
GRID = np.linspace(0, 10, 2001)
ROUGH = {  # name: function, its derivative, lower and upper bound of the arguments
    "floor": (np.floor, lambda x: 0 * x, 0, 1000),
    "mod": (lambda x: np.mod(x, 1), lambda x: 1 + 0 * x, 100, 1000),
    "searchsorted": (lambda x: np.searchsorted(GRID, x) / 200.0, lambda x: 0 * x, 0.5, 9),
    "triangle": (lambda x: np.abs(x % 2 - 1), lambda x: jnp.sign(x % 2 - 1), 100, 1000),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, -2, 2),
    "440 Hz": (
        lambda t: np.sin(TAU * 440 * t), lambda t: TAU * 440 * jnp.cos(TAU * 440 * t), 0, 1
    ),
    "sin far out": (np.sin, jnp.cos, 300, 30000),
    "narrow peak": (
        lambda e: np.exp(-(((e - 300) / 0.3) ** 2)),
        lambda e: -2 * (e - 300) / 0.09 * jnp.exp(-(((e - 300) / 0.3) ** 2)), 298, 302,
    ),
    "table": (lambda x: np.interp(x, GRID, np.sin(GRID)), jnp.cos, 0.5, 9),
    "bisected": (bisected, lambda x: 1 / (3 * jnp.cbrt(x) ** 2), 0.5, 5),
    "in float32": (
        lambda x: np.sin(np.float32(x) * np.float32(30)), lambda x: 30 * jnp.cos(30 * x), 0.5, 5
    ),
    "steps": (lambda x: np.round(x * 3000) / 3000, lambda x: 1 + 0 * x, 0.1, 1),
    "a rule that cancels in float32": (
        lambda x: (x - 1) ** 4, lambda x: 4 * x**3 - 12 * x**2 + 12 * x - 4, 0.98, 1.02
    ),
    "offset in float32": (lambda x: np.float32(1e4) + np.sin(np.float32(x)), jnp.cos, 0.5, 5),
} | {f"noise of {a}": (noisy(a), jnp.cos, 0.5, 2) for a in (1e-3, 1e-4, 1e-5, 1e-6)}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ROUGH)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(), (3,)]))
def test_correct_rule_of_a_rough_function_has_no_finding(name, seed, shape):
    function, derivative, low, high = ROUGH[name]
    x = np.float32(np.random.default_rng(seed).uniform(low, high, shape))
    found = jaxcb.check(ruled(function, lambda x, dx: derivative(x) * dx), x)
    assert found.ok, found


@pytest.mark.parametrize("name", ["floor", "mod", "440 Hz", "sin far out", "narrow peak"])
def test_correct_rule_of_a_locally_smooth_function_is_confirmed(name):
    function, derivative, low, high = ROUGH[name]
    x = np.float32(np.random.default_rng(0).uniform(low, high))
    found = jaxcb.check(ruled(function, lambda x, dx: derivative(x) * dx), x)
    assert "derivative rule" in found.kept


SMOOTH = {
    "sin": (np.sin, lambda x, dx: jnp.cos(x) * dx),
    "square": (np.square, lambda x, dx: 2 * x * dx),
    "exp": (np.exp, lambda x, dx: jnp.exp(x) * dx),
    "j1": (scipy.special.expit, lambda x, dx: jax.nn.sigmoid(x) * (1 - jax.nn.sigmoid(x)) * dx),
    "offset": (lambda x: 1000 + np.sin(x), lambda x, dx: jnp.cos(x) * dx),
    "in float32": (lambda x: np.sin(x.astype(np.float32)), lambda x, dx: jnp.cos(x) * dx),
    "very different scales": (
        lambda x: np.array([1e6, 1, 1e-6]) * x, lambda x, dx: jnp.array([1e6, 1, 1e-6]) * dx
    ),
    "cumsum": (np.cumsum, lambda x, dx: jnp.cumsum(dx)),
}  # fmt: skip
WRONG = {
    "sign": lambda right, x, dx: -right,
    "half": lambda right, x, dx: right / 2,
    "10 % too large": lambda right, x, dx: 1.1 * right,
    "one element": lambda right, x, dx: right.at[1].multiply(2),
    "zero": lambda right, x, dx: 0 * right,
}


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", SMOOTH)
def test_wrong_rule_of_a_smooth_function_is_found(name, wrong):
    function, right = SMOOTH[name]
    generator = np.random.default_rng(7)
    rule = lambda x, dx: WRONG[wrong](right(x, dx), x, dx)  # noqa: E731
    callback = ruled(function, rule)
    for _ in range(4):
        x = np.float32(generator.uniform(0.2, 1.2, 3))
        assert only(callback, x).kind == "derivative rule"


def test_value_of_a_rule_is_compared():
    sin = ruled(np.sin, lambda x, dx: jnp.cos(x) * dx)
    sin.defjvp(lambda p, t: (jnp.cos(*p), jnp.cos(*p) * t[0]))
    finding = only(sin, X)
    assert finding.what.startswith("defjvp returns the value 0.54030")
    sin = jaxcb.pure(np.sin, result="x")
    sin.defvjp(lambda x: (jnp.cos(x), x), lambda x, g: (jnp.cos(x) * g,))
    assert only(sin, X).what.startswith("defvjp returns the value 0.54030")


Z = np.complex64([1 + 2j, 0.3 - 1j])
COMPLEX = {  # name: function, its derivative along dz, the argument
    "holomorphic": (lambda z: z**2, lambda z, dz: 2 * z * dz, Z),
    "of the conjugate": (np.conj, lambda z, dz: jnp.conj(dz), Z),
    "to real": (lambda z: np.abs(z) ** 2, lambda z, dz: 2 * jnp.real(jnp.conj(z) * dz), Z),
    "from real": (lambda x: np.exp(1j * x), lambda x, dx: 1j * jnp.exp(1j * x) * dx, X),
}
COTANGENTS = {  # JAX's convention for cotangents does not conjugate
    "holomorphic": lambda z, g: 2 * z * g,
    "of the conjugate": lambda z, g: jnp.conj(g),
    "to real": lambda z, g: 2 * jnp.conj(z) * g,
    "from real": lambda x, g: jnp.real(1j * jnp.exp(1j * x) * g),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("factor", [1, -1, 1j])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_rule_is_compared_in_real_and_imaginary_part(name, factor, kind):
    function, along, z = COMPLEX[name]
    result = np.complex64(function(z)) if name != "to real" else np.float32(function(z))
    callback = jaxcb.pure(lambda z: function(z), result=result)
    if kind == "jvp":
        real = (lambda y: jnp.real(y)) if name == "to real" else (lambda y: y)
        callback.defjvp(lambda p, t: (callback(*p), real(factor * along(p[0], t[0]))))
    else:
        real = (lambda y: jnp.real(y)) if name == "from real" else (lambda y: y)
        callback.defvjp(
            lambda z: (callback(z), z), lambda z, g: (real(factor * COTANGENTS[name](z, g)),)
        )
    found = jaxcb.check(callback, z)
    assert found.ok == (factor == 1), found
    assert ("derivative rule" in found.kept) == found.ok


@pytest.mark.parametrize("first", [0, 100, 199])
def test_reverse_rule_is_checked_for_all_entries_of_a_long_result(first):
    square = pure()(lambda x: x**2)
    weights = jnp.ones(200).at[first].set(3.0)
    square.defvjp(lambda x: (square(x), x), lambda x, g: (2 * weights * x * g,))
    assert only(square, np.float32(np.linspace(1, 2, 200))).kind == "derivative rule"


def test_later_arguments_are_differentiated_together():
    add = pure(result=X[0])(lambda *xs: sum(x.sum() for x in xs))
    add.defjvp(lambda p, t: (add(*p), sum(dx.sum() for dx in t[:-1])))
    assert only(add, *[X] * 9).what.startswith("by args[4] and 4 others, ")


def with_gradient(factor):
    """Return a callback of two results that returns its gradient, times `factor` in one place."""

    def simulate(params, target):
        path, mass = params["speed"] * target, params["mass"]
        by_path = {"speed": np.diag(target), "mass": np.zeros(2)}
        by_energy = {"speed": np.zeros(2), "mass": factor * 2 * mass}
        return (path, mass**2), (by_path, by_energy)

    return jaxcb.pure(simulate, result="(params['speed'], params['mass'])", gradient="params")


PARAMS = {"speed": np.float32([1.0, 2.0]), "mass": np.float32(3.0)}
TARGET = np.float32([0.5, 0.25])


def test_right_returned_gradient_is_confirmed():
    found = jaxcb.check(with_gradient(1), PARAMS, target=TARGET)
    assert found.ok, found
    assert "derivative rule" in found.kept


@pytest.mark.parametrize("factor", [-1, 0, 1.1])
def test_wrong_returned_gradient_is_found_by_its_argument_and_result(factor):
    finding = only(with_gradient(factor), PARAMS, TARGET)
    assert finding.kind == "derivative rule"
    assert finding.what.startswith("by args[0]['mass'], along ")
    assert "its gradient gives" in finding.what
    assert finding.advice.startswith("Fix the gradient that simulate returns.")


def newton(steps):
    """Return a square root by Newton's method from a starting point, with its implicit rule."""

    def root(a, start):
        x = np.float64(start)
        for _ in range(steps):
            x = x - (x * x - np.float64(a)) / (2 * x)
        return x

    callback = jaxcb.pure(root, result="a")

    @callback.defjvp
    def rule(primals, tangents):
        (a, start), (da, _) = primals, tangents
        x = callback(a, start)
        return x, da / (2 * x)

    return callback


@pytest.mark.kept
@pytest.mark.parametrize("start", [1.0, 2.0])
@pytest.mark.parametrize("steps", [3, 4, 6])
def test_a_starting_point_of_negligible_influence_is_no_finding(steps, start):
    found = jaxcb.check(newton(steps), 2.0, start)
    assert found.ok and "derivative rule" in found.kept, str(found)


@pytest.mark.kept
def test_tolerance_is_what_a_solver_leaves_of_its_starting_point():
    with jax.enable_x64(True):
        found = jaxcb.check(newton(3), 2.0, 1.0)
        assert [one.kind for one in found.findings] == ["derivative rule"]
        assert jaxcb.check(newton(3), 2.0, 1.0, tolerance=1e-4).ok
        assert jaxcb.check(lambda a: newton(3)(a, 1.0), 2.0, tolerance=1e-4).ok


@pytest.mark.kept
def test_a_wrong_rule_is_found_with_a_tolerance():
    wrong = ruled(np.sin, lambda x, dx: -jnp.cos(x) * dx)
    assert not jaxcb.check(wrong, np.float32(0.5), tolerance=1e-2).ok
    none = ruled(np.sin, lambda x, dx: 0.0 * dx)
    assert not jaxcb.check(none, np.float32(0.5)).ok


@pytest.mark.kept
@pytest.mark.parametrize("tolerance", [-1e-3, 1, "1e-3", None, float("nan")])
def test_a_tolerance_that_is_no_relative_error_is_refused(tolerance):
    with pytest.raises(ValueError, match=r"cannot check with tolerance=.*such as 1e-3"):
        jaxcb.check(newton(3), 2.0, 1.0, tolerance=tolerance)


@pytest.mark.kept
def test_the_rule_of_a_callback_with_a_key_is_checked():
    noise = jaxcb.pure(lambda x, key: x * (1 + key[0] % 7), result="x")
    noise.defjvp(
        lambda p, t: (noise(*p), t[0] * (1 + jax.random.key_data(p[1])[0] % 7).astype(p[0].dtype))
    )
    found = jaxcb.check(noise, np.float32(0.5), jax.random.key(3))
    assert found.ok and "derivative rule" in found.kept, str(found)


@pytest.mark.kept
def test_argument_of_small_effect_that_a_rule_forgets_is_found():
    @jaxcb.pure(result="p")
    def drag(p, v):
        return p + 1e-4 * v

    drag.defjvp(lambda primals, tangents: (drag(*primals), tangents[0]))
    finding = only(drag, np.float32(1), np.float32(2))
    assert finding.what.startswith("by args[1], ")
