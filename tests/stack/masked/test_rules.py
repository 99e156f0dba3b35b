"""A derivative rule of a masked call computes, and calls the host, for the needed elements only."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.linspace(-2, 2, 6, dtype=np.float32)
NEEDED = X > 0


class Sine:
    """sin, with its derivatives as other callbacks; counts the host calls."""

    def __init__(self, **options):
        self.calls = Counter()
        self.f = self.callback("sin", np.sin, **options)
        self.slope = self.callback("cos", np.cos)
        self.curve = self.callback("-sin", lambda x: -np.sin(x))
        self.slope.defjvp(lambda p, t: (self.slope(*p), self.curve(*p) * t[0]))

    def callback(self, name, function, **options):
        return jaxcb.pure(
            lambda x: (self.calls.update([name]), function(x))[1], result="x", **options
        )

    def __call__(self, x):
        """The masked call: 3 x where it is not needed."""
        return self.f.where(x > 0, x, otherwise=3 * x)


def plain(sine):
    sine.f.defjvp(lambda p, t: (sine.f(*p), sine.slope(*p) * t[0]))


def reverse(sine):
    sine.f.defvjp(lambda x: (sine.f(x), x), lambda x, ct: (sine.slope(x) * ct,))


def symbolic(sine):
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return sine.f(x), sine.slope(x) * t

    sine.f.defjvp(rule, symbolic_zeros=True)


def in_jit(sine):
    helper = jax.jit(lambda x: sine.slope(x))
    sine.f.defjvp(lambda p, t: (sine.f(*p), helper(*p) * t[0]))


def in_scan(sine):
    def rule(p, t):
        total, _ = jax.lax.scan(
            lambda c, i: (c + sine.slope(p[0] + 0 * i), None), 0.0, jnp.zeros(1)
        )
        return sine.f(*p), total * t[0]

    sine.f.defjvp(rule)


def in_cond(sine):
    def rule(p, t):
        return sine.f(*p), jax.lax.cond(p[0] > 9, lambda x: x, sine.slope, *p) * t[0]

    sine.f.defjvp(rule)


def in_checkpoint(sine):
    sine.f.defjvp(lambda p, t: (sine.f(*p), jax.checkpoint(sine.slope)(*p) * t[0]))


def in_custom_jvp(sine):
    helper = jax.custom_jvp(lambda x: sine.slope(x))
    helper.defjvp(lambda p, t: (helper(*p), sine.curve(*p) * t[0]))
    sine.f.defjvp(lambda p, t: (sine.f(*p), helper(*p) * t[0]))


RULES = [plain, reverse, symbolic, in_jit, in_scan, in_cond, in_checkpoint, in_custom_jvp]
DERIVATIVES = {
    "vmap of grad": lambda g: jax.vmap(jax.grad(g)),
    "grad of vmap": lambda g: jax.grad(lambda x: jax.vmap(g)(x).sum()),
    "vmap of vmap": lambda g: lambda x: jax.vmap(jax.vmap(jax.grad(g)))(x.reshape(2, 3)).ravel(),
    "jvp": lambda g: lambda x: jax.jvp(jax.vmap(g), (x,), (jnp.ones_like(x),))[1],
    "linearize": lambda g: lambda x: jax.linearize(jax.vmap(g), x)[1](jnp.ones_like(x)),
}
FORWARD = ("jvp", "linearize")


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("rule", "derivative"),
    [
        (rule, derivative)
        for rule in RULES
        for derivative in DERIVATIVES
        if not (rule is reverse and derivative in FORWARD)  # JAX has none for custom_vjp
    ],
)
def test_callbacks_in_a_rule_are_called_for_the_needed_elements(rule, derivative, jitted):
    sine = Sine()
    rule(sine)
    differentiated = DERIVATIVES[derivative](sine)
    found = (jax.jit(differentiated) if jitted else differentiated)(X)
    np.testing.assert_allclose(found, np.where(NEEDED, np.cos(X), 3), rtol=1e-6)
    assert sine.calls["cos"] == NEEDED.sum()
    assert sine.calls["sin"] in (0, NEEDED.sum())  # XLA removes unused calls of programs


@pytest.mark.parametrize("rule", [plain, in_jit, in_custom_jvp])
def test_second_derivatives_are_masked_too(rule):
    sine = Sine()
    rule(sine)
    found = jax.jit(jax.vmap(jax.grad(jax.grad(sine))))(X)
    np.testing.assert_allclose(found, np.where(NEEDED, -np.sin(X), 0), rtol=1e-6, atol=1e-6)
    assert set(sine.calls) == {"-sin"}
    assert sine.calls["-sin"] == NEEDED.sum()


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("rule", [plain, in_jit])
def test_other_calls_before_and_after_are_not_masked(rule, jitted):
    """A function that JAX traced inside a masked rule is not used outside of it."""
    sine = Sine()
    rule(sine)
    of_all = jax.vmap(jax.grad(lambda x: sine.f(x)))
    masked = jax.vmap(jax.grad(sine))
    for function, expected in [(of_all, np.cos(X)), (masked, np.where(NEEDED, np.cos(X), 3))] * 2:
        sine.calls.clear()
        found = (jax.jit(function) if jitted else function)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert sine.calls["cos"] == (X.size if function is of_all else NEEDED.sum())


@pytest.mark.parametrize("needed", [True, False])
def test_eager_rule_without_vmap_runs_once_or_not_at_all(needed):
    sine = Sine()
    plain(sine)
    x = np.float32(1 if needed else -1)
    assert float(jax.grad(sine)(x)) == pytest.approx(np.cos(1) if needed else 3)
    assert sine.calls == (Counter(sin=1, cos=1) if needed else Counter())


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("jitted", [False, True])
def test_finite_differences_move_the_arguments_of_needed_elements(derivative, jitted):
    sine = Sine(derivative="finite")
    differentiated = DERIVATIVES[derivative](sine)
    found = (jax.jit(differentiated) if jitted else differentiated)(X)
    np.testing.assert_allclose(found, np.where(NEEDED, np.cos(X), 3), rtol=1e-3)
    assert sine.calls["sin"] in (2 * NEEDED.sum(), 3 * NEEDED.sum())


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("rule", ["jvp", "vjp", "finite"])
def test_nan_where_the_mask_is_false_does_not_reach_a_gradient(rule, jitted):
    log = jaxcb.pure(np.log, result=lambda x: x, derivative="finite")
    if rule == "jvp":
        log.defjvp(lambda p, t: (log(*p), t[0] / jnp.sqrt(p[0]) ** 2))
    elif rule == "vjp":
        log.defvjp(lambda x: (log(x), x), lambda x, ct: (ct / jnp.sqrt(x) ** 2,))

    def g(x):
        return log.where(x > 0, x, otherwise=0.0)

    x = np.float32([-1.0, 0.0, 2.0])
    gradient = jax.grad(lambda x: jax.vmap(g)(x).sum())
    np.testing.assert_allclose(
        (jax.jit(gradient) if jitted else gradient)(x), [0, 0, 0.5], rtol=1e-3
    )
    if rule != "vjp":
        _, tangent = jax.jvp(jax.vmap(g), (x,), (np.ones_like(x),))
        np.testing.assert_allclose(tangent, [0, 0, 0.5], rtol=1e-3)


def test_arguments_without_derivative_keep_their_places():
    calls = []
    power = jaxcb.pure(lambda n, x: (calls.append(n), x**n)[1], result="x")

    @power.defjvp
    def _rule(n, primals, tangents):
        (x,), (t,) = primals, tangents
        return power(n, x), n * power(n - 1, x) * t

    power.defjvp(_rule, nondiff_argnums=(0,))
    g = jax.jit(jax.vmap(jax.grad(lambda x: power.where(x > 1, 3, x, otherwise=0.0))))
    np.testing.assert_allclose(g(np.float32([1, 2, 3])), [0, 12, 27])
    assert calls == [2, 2]


def test_argument_that_needs_nondiff_argnums_is_named_by_its_own_place():
    f = jaxcb.pure(lambda x, kind: x, result="x")
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TypeError, match=r"as argument 1: .*nondiff_argnums="):
        f.where(True, np.float32(1), "linear", otherwise=0.0)


def test_keywords_and_defaults_of_a_ruled_callback_are_resolved():
    scaled = jaxcb.pure(lambda x, scale=2.0: x * scale, result="x")
    scaled.defjvp(lambda p, t: (scaled(*p), t[0] * p[1]))
    g = lambda x: scaled.where(x > 0, scale=jnp.float32(5), x=x, otherwise=0.0)  # noqa: E731
    np.testing.assert_allclose(jax.vmap(jax.grad(g))(np.float32([-1, 1])), [0, 5])
    assert float(scaled.where(True, np.float32(3), otherwise=0.0)) == 6


def test_derivative_with_respect_to_otherwise():
    sine = Sine()
    plain(sine)
    g = lambda x, y: sine.f.where(x > 0, x, otherwise=y**2)  # noqa: E731
    found = jax.jit(jax.vmap(jax.grad(g, argnums=1)))(X, X)
    np.testing.assert_allclose(found, np.where(NEEDED, 0, 2 * X))
    assert not sine.calls
