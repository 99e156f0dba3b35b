"""Correct derivative rules have no findings, even for rough functions; wrong rules have one."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

from ._planted import X, pure
from .test_check import only


def ruled(function, derivative):
    callback = jaxcb.pure(lambda x: function(x), result="x")
    callback.defjvp(lambda p, t: (callback(*p), derivative(p[0], t[0])))
    return callback


def sloped(function, slope):
    return ruled(function, lambda x, dx: slope(x) * dx)


def noisy(x):
    """Return the sine plus noise that depends on nothing but the argument."""
    drawn = [zlib.crc32(np.float64(value).tobytes()) / 2**32 - 0.5 for value in np.ravel(x)]
    return np.sin(x) + 1e-4 * np.reshape(drawn, np.shape(x))


def bisected(x):
    root = lambda a: scipy.optimize.bisect(lambda z: z**3 - a, 0, 10, xtol=1e-4)  # noqa: E731
    return np.reshape([root(a) for a in np.ravel(x)], np.shape(x))


TAU = 2 * np.pi
GRID = np.linspace(0, 10, 2001)
ROUGH = {  # name: function, its derivative, lower and upper bound of the arguments
    "floor": (np.floor, lambda x: 0 * x, 0, 1000),
    "searchsorted": (lambda x: np.searchsorted(GRID, x) / 200.0, lambda x: 0 * x, 0.5, 9),
    "triangle": (lambda x: np.abs(x % 2 - 1), lambda x: jnp.sign(x % 2 - 1), 100, 1000),
    "440 Hz": (
        lambda t: np.sin(TAU * 440 * t), lambda t: TAU * 440 * jnp.cos(TAU * 440 * t), 0, 1
    ),
    "narrow peak": (
        lambda e: np.exp(-(((e - 300) / 0.3) ** 2)),
        lambda e: -2 * (e - 300) / 0.09 * jnp.exp(-(((e - 300) / 0.3) ** 2)), 298, 302,
    ),
    "table": (lambda x: np.interp(x, GRID, np.sin(GRID)), jnp.cos, 0.5, 9),
    "bisected": (bisected, lambda x: 1 / (3 * jnp.cbrt(x) ** 2), 0.5, 5),
    "steps": (lambda x: np.round(x * 3000) / 3000, lambda x: 1 + 0 * x, 0.1, 1),
    "a rule that cancels in float32": (
        lambda x: (x - 1) ** 4, lambda x: 4 * x**3 - 12 * x**2 + 12 * x - 4, 0.98, 1.02
    ),
    "offset in float32": (lambda x: np.float32(1e4) + np.sin(np.float32(x)), jnp.cos, 0.5, 5),
    "noise": (noisy, jnp.cos, 0.5, 2),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ROUGH)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(), (3,)]))
def test_correct_rule_of_a_rough_function_has_no_finding(name, seed, shape):
    function, derivative, low, high = ROUGH[name]
    x = np.float32(np.random.default_rng(seed).uniform(low, high, shape))
    found = jaxcb.check(sloped(function, derivative), x)
    assert found.ok, found


SMOOTH = {
    "sin": (np.sin, jnp.cos),
    "offset": (lambda x: 1000 + np.sin(x), jnp.cos),
    "in float32": (lambda x: np.sin(x.astype(np.float32)), jnp.cos),
    "very different scales": (
        lambda x: np.array([1e6, 1, 1e-6]) * x, lambda x: jnp.array([1e6, 1, 1e-6])
    ),
}  # fmt: skip
WRONG = {
    "sign": lambda right: -right,
    "10 % too large": lambda right: 1.1 * right,
    "one element": lambda right: right.at[1].multiply(2),
    "zero": lambda right: 0 * right,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_right_rule_of_a_smooth_function_is_confirmed_and_wrong_ones_are_found(name):
    function, right = SMOOTH[name]
    for x in np.float32(np.random.default_rng(7).uniform(0.2, 1.2, (2, 3))):
        assert "derivative rule" in jaxcb.check(sloped(function, right), x).kept
        for wrong in WRONG.values():
            callback = sloped(function, lambda x: wrong(right(x)))  # noqa: B023
            assert only(callback, x).kind == "derivative rule"


@pytest.mark.parametrize(
    ("function", "derivative", "x"),
    [
        (np.floor, lambda x: 0 * x, np.float32(636.9)),
        (*ROUGH["440 Hz"][:2], np.float32(0.64)),
        (np.sin, jnp.cos, np.float32([0.0, 1e-3])),
        (np.square, lambda x: 2 * x, np.float32(0.0)),
        (np.tanh, lambda x: 1 - jnp.tanh(x) ** 2, X.astype(np.float16)),
    ],
)
def test_correct_rule_is_confirmed_at_a_special_point(function, derivative, x):
    found = jaxcb.check(sloped(function, derivative), x)
    assert found.ok and "derivative rule" in found.kept, found


def test_derivative_at_a_kink_is_not_checked():
    found = jaxcb.check(sloped(np.abs, jnp.sign), np.float32([0.0]))
    assert found.ok and "kink" in found.left_out["derivative rule"]


@pytest.mark.parametrize("sign", [1, -1])
def test_reverse_rule_of_two_results_with_a_static_argument(sign):
    @pure(result=(X, X[0]))
    def both(x, y, factor):
        return factor * np.sin(x) * y, (x * y).sum()

    def backward(factor, kept, g):
        x, y = kept
        by_x = factor * g[0] * jnp.cos(x) * y + g[1] * y
        return by_x, sign * ((factor * g[0] * jnp.sin(x)).sum() + g[1] * x.sum())

    both.defvjp(lambda x, y, factor: (both(x, y, factor), (x, y)), backward, nondiff_argnums=(2,))
    found = jaxcb.check(both, X, np.float32(2), 3.0)
    assert found.ok == ("derivative rule" in found.kept) == (sign == 1)
    assert ("by args[1], along -1, defvjp gives" in str(found)) == (sign < 0)
    assert ("the sign is wrong" in str(found)) == (sign < 0)


def test_value_of_a_rule_is_compared():
    forward, reverse = jaxcb.pure(np.sin, result="x"), jaxcb.pure(np.sin, result="x")
    forward.defjvp(lambda p, t: (jnp.cos(*p), jnp.cos(*p) * t[0]))
    reverse.defvjp(lambda x: (jnp.cos(x), x), lambda x, g: (jnp.cos(x) * g,))
    assert only(forward, X).what.startswith("defjvp returns the value 0.54030")
    assert only(reverse, X).what.startswith("defvjp returns the value 0.54030")


Z = np.complex64([1 + 2j, 0.3 - 1j])
COMPLEX = {  # name: function, its derivative along dz, its cotangent, the argument
    "holomorphic": (lambda z: z**2, lambda z, dz: 2 * z * dz, lambda z, g: 2 * z * g, Z),
    "of the conjugate": (np.conj, lambda z, dz: dz.conj(), lambda z, g: g.conj(), Z),
    "to real": (
        lambda z: np.abs(z) ** 2, lambda z, dz: 2 * (z.conj() * dz).real,
        lambda z, g: 2 * z.conj() * g, Z,
    ),
    "from real": (
        lambda x: np.exp(1j * x), lambda x, dx: 1j * jnp.exp(1j * x) * dx,
        lambda x, g: (1j * jnp.exp(1j * x) * g).real, X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("factor", [1, -1])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_rule_is_compared_in_real_and_imaginary_part(name, factor):
    function, along, back, z = COMPLEX[name]
    result = np.complex64(function(z)) if name != "to real" else np.float32(function(z))
    forward, reverse = (jaxcb.pure(lambda z: function(z), result=result) for _ in range(2))
    forward.defjvp(lambda p, t: (forward(*p), factor * along(*p, *t)))
    reverse.defvjp(lambda z: (reverse(z), z), lambda z, g: (factor * back(z, g),))
    for found in (jaxcb.check(forward, z), jaxcb.check(reverse, z)):
        assert found.ok == ("derivative rule" in found.kept) == (factor == 1), found


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
    """Return a callback that returns its gradient, times `factor` in one place."""

    def simulate(params, target):
        path, mass = params["speed"] * target, params["mass"]
        by_path = {"speed": np.diag(target), "mass": np.zeros(2)}
        return (path, mass**2), (by_path, {"speed": np.zeros(2), "mass": factor * 2 * mass})

    return jaxcb.pure(simulate, result="(params['speed'], params['mass'])", gradient="params")


def test_returned_gradient_is_confirmed_or_found_wrong_by_its_argument():
    args = {"speed": np.float32([1.0, 2.0]), "mass": np.float32(3.0)}, np.float32([0.5, 0.25])
    assert "derivative rule" in jaxcb.check(with_gradient(1), args[0], target=args[1]).kept
    finding = only(with_gradient(1.1), *args)
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
