"""A derivative rule of a masked call computes, and calls the host, for the needed elements only."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.custom_derivatives import SymbolicZero

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


def in_grad_of_jit(sine):
    helper = jax.custom_jvp(lambda x: sine.slope(x))
    helper.defjvp(lambda p, t: (helper(*p), sine.curve(*p) * t[0]))

    def rule(p, t):
        value, _ = jax.jvp(jax.jit(helper), p, (jnp.ones_like(p[0]),))
        return sine.f(*p), value * t[0]

    sine.f.defjvp(rule)


def in_custom_vmap(sine):
    helper = jax.custom_batching.custom_vmap(lambda x: sine.slope(x))
    helper.def_vmap(lambda size, batched, x: (jax.vmap(sine.slope)(x), True))
    sine.f.defjvp(lambda p, t: (sine.f(*p), helper(*p) * t[0]))


DIRECT = [plain, reverse, symbolic]
# JAX traces the callback on its own.
INSIDE = [in_jit, in_scan, in_cond, in_checkpoint, in_custom_jvp, in_grad_of_jit, in_custom_vmap]
DERIVATIVES = {
    "vmap of grad": lambda g: jax.vmap(jax.grad(g)),
    "grad of vmap": lambda g: jax.grad(lambda x: jax.vmap(g)(x).sum()),
    "vmap of vmap": lambda g: lambda x: jax.vmap(jax.vmap(jax.grad(g)))(x.reshape(2, 3)).ravel(),
    "jvp": lambda g: lambda x: jax.jvp(jax.vmap(g), (x,), (jnp.ones_like(x),))[1],
    "linearize": lambda g: lambda x: jax.linearize(jax.vmap(g), x)[1](jnp.ones_like(x)),
}
FORWARD = ("jvp", "linearize")


@pytest.mark.long
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("rule", "derivative"),
    [
        (rule, derivative)
        for rule in [*DIRECT, *INSIDE]
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
    # The mask does not get through JAX's custom_vmap.
    assert sine.calls["cos"] == (X.size if rule is in_custom_vmap else NEEDED.sum())
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


def by_jvp(root):
    root.defjvp(lambda p, t: (root(*p), (t[0] + t[1]) / (2 * jnp.sqrt(p[0] + p[1]))))


def by_jvp_from_result(root):
    def rule(p, t):
        y = root(*p)
        return y, (t[0] + t[1]) / (2 * y)

    root.defjvp(rule)


def by_jvp_with_another_mask(root):
    slope = jaxcb.pure(lambda w, x: 0.5 / np.sqrt(w + x), result="x")

    def of_slope(p, t):
        y = slope(*p)
        return y, -2 * y**3 * (t[0] + t[1])

    slope.defjvp(of_slope)

    def rule(p, t):
        y = slope.where(p[0] + p[1] > 0, *p, otherwise=np.nan)
        return root(*p), p[0] * y / p[0] * (t[0] + t[1])

    root.defjvp(rule)


def by_jvp_with_symbolic_zeros(root):
    def rule(p, t):
        t = sum(jnp.zeros(d.shape) if isinstance(d, SymbolicZero) else d for d in t)
        return root(*p), t / (2 * jnp.sqrt(p[0] + p[1]))

    root.defjvp(rule, symbolic_zeros=True)


def by_vjp(root):
    root.defvjp(
        lambda w, x: (root(w, x), (w, x)), lambda r, ct: (ct / (2 * jnp.sqrt(r[0] + r[1])),) * 2
    )


def by_vjp_from_slope(root):
    root.defvjp(lambda w, x: (root(w, x), 1 / (2 * jnp.sqrt(w + x))), lambda r, ct: (ct * r,) * 2)


def by_vjp_with_symbolic_zeros(root):
    root.defvjp(
        lambda w, x: (root(w.value, x.value), w.value + x.value),
        lambda r, ct: (ct / (2 * jnp.sqrt(r)),) * 2,
        symbolic_zeros=True,
    )


HIGHER = {
    "twice": lambda g: jax.grad(jax.grad(g)),
    "three times": lambda g: jax.grad(jax.grad(jax.grad(g))),
    "forward over reverse": lambda g: jax.jacfwd(jax.grad(g)),
    "reverse over forward": lambda g: jax.grad(jax.jacfwd(g)),
}
OF_BATCH = {
    "of vmap": lambda d: (
        lambda g: jax.jit(d(lambda w, x: jax.vmap(jax.jit(g), (None, 0))(w, x).sum()))
    ),
    "in vmap": lambda d: lambda g: jax.vmap(d(g), (None, 0)),
    "one by one": lambda d: lambda g: lambda w, x: jnp.stack([d(g)(w, v) for v in x]),
}
HIGHER_OF = {
    by_jvp: HIGHER,
    by_jvp_from_result: ("twice", "reverse over forward"),
    by_jvp_with_another_mask: ("twice", "reverse over forward"),
    by_jvp_with_symbolic_zeros: ("twice", "reverse over forward"),
    by_vjp: ("twice", "three times"),
    by_vjp_from_slope: ("twice",),
    by_vjp_with_symbolic_zeros: ("twice",),
}


@pytest.mark.long
@pytest.mark.parametrize("batch", OF_BATCH)
@pytest.mark.parametrize(
    ("rule", "higher"), [(rule, higher) for rule in HIGHER_OF for higher in HIGHER_OF[rule]]
)
def test_nan_where_the_mask_is_false_does_not_reach_a_higher_derivative(rule, higher, batch):
    root = jaxcb.pure(lambda w, x: np.sqrt(w + x), result="x")
    rule(root)

    def masked(w, x):
        return root.where(w + x > 0, w, x, otherwise=x * w**3)

    def plain(w, x):
        needed = w + x > 0
        return jnp.where(needed, jnp.sqrt(jnp.where(needed, w + x, 1.0)), x * w**3)

    derivative = OF_BATCH[batch](HIGHER[higher])
    for x in np.float32([[-1, 3, -2], [-1, -2, -1]]):  # no element of the second one is needed
        found, expected = (derivative(g)(jnp.float32(1), x) for g in (masked, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("jitted", [False, True])
def test_rule_computes_with_a_needed_element_where_the_mask_is_false(jitted):
    given = set()

    def slope_of(w, x):
        given.add((float(w), float(x)))
        return np.float32(x - w) / 2

    slope = jaxcb.pure(slope_of, result="x")
    helper = jax.custom_batching.custom_vmap(lambda w, x: slope(w, x))  # for all elements

    @helper.def_vmap
    def _of_batch(size, batched, *args):
        axes = tuple(0 if on else None for on in batched)
        return jax.vmap(slope, axes)(*args), any(batched)

    f = jaxcb.pure(lambda w, x: x**2, result="x")
    f.defjvp(lambda p, t: (f(*p), helper(*p) * t[1]))
    g = jax.vmap(jax.grad(lambda w, x: f.where(x > w, w, x, otherwise=0.0), 1), (None, 0))
    g = jax.jit(jax.vmap(g, (0, 0))) if jitted else jax.vmap(g, (0, 0))
    w, x = np.float32([1, 9, 3]), np.float32([[0, 5, 3], [0, 4, 1], [8, 1, 2]])
    np.testing.assert_array_equal(g(w, x), [[0, 2, 1], [0, 0, 0], [2.5, 0, 0]])
    assert given == {(1, 5), (1, 3), (3, 8)}
    given.clear()
    np.testing.assert_array_equal(g(w, -x), np.zeros((3, 3)))
    assert given == {(1, 1)}


@pytest.mark.parametrize("jitted", [False, True])
def test_rule_that_is_infinite_for_one_has_no_higher_derivative_where_no_element_is_needed(jitted):
    f = jaxcb.pure(np.log, result="x")
    f.defjvp(lambda p, t: (f(*p), t[0] / (p[0] - 1)))
    g = jax.vmap(jax.grad(jax.grad(lambda x: f.where(x > 1, x, otherwise=0.0))))
    np.testing.assert_array_equal((jax.jit(g) if jitted else g)(-X[3:]), [0, 0, 0])


@pytest.mark.long
def test_second_derivative_of_a_masked_call_in_a_checked_shard_map():
    root = jaxcb.pure(lambda w, x: np.sqrt(w + x), result="x")
    by_jvp(root)
    g = jax.grad(jax.grad(lambda x: root.where(x > 0, 0.0, x, otherwise=0.0)))
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("d",))
    split = jax.sharding.PartitionSpec("d")
    mapped = jax.shard_map(jax.vmap(g), mesh=mesh, in_specs=split, out_specs=split, check_vma=True)
    np.testing.assert_array_equal(mapped(np.float32([-1, 4, 0])), [0, -1 / 32, 0])


@pytest.mark.parametrize("rule", [by_jvp, by_jvp_from_result])
def test_rule_makes_no_nan_for_debug_nans_where_the_mask_is_false(rule):
    root = jaxcb.pure(lambda w, x: np.sqrt(w + x), result="x")
    rule(root)
    g = jax.vmap(jax.grad(lambda x: root.where(x > 0, 0.0, x, otherwise=0.0)))
    with jax.debug_nans(True):
        np.testing.assert_array_equal(g(np.float32([-1, 4, 0])), [0, 0.25, 0])


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


@pytest.mark.parametrize("rule", ["none", "jvp", "vjp", "finite"])
@pytest.mark.parametrize("method", ["expand_dims", "legacy_vectorized"])
def test_unbatched_argument_reaches_the_host_as_without_a_mask(rule, method):
    shapes = []

    def scaled(w, x):
        shapes.append((w.shape, x.shape))
        return w * x

    derivative = {"derivative": "finite"} if rule == "finite" else {}
    f = jaxcb.pure(scaled, result="x", vmap_method=method, **derivative)
    if rule == "jvp":
        f.defjvp(lambda p, t: (f(*p), t[1]))
    elif rule == "vjp":
        f.defvjp(lambda w, x: (f(w, x), None), lambda _, ct: (ct, ct))
    w, x = jnp.full(2, 3.0), jnp.arange(6.0).reshape(3, 2)
    call = jax.vmap(lambda w, x: f.where(x[0] > 0, w, x, otherwise=0), in_axes=(None, 0))
    np.testing.assert_allclose(jax.jit(call)(w, x), [[0, 0], [6, 9], [12, 15]])
    assert shapes == [((1, 2) if method == "expand_dims" else (2,), (2, 2))]


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_argument_of_nondiff_argnums_stays_a_number(kind):
    f = jaxcb.pure(lambda w, x: w * x, result="x")
    if kind == "jvp":
        f.defjvp(lambda w, p, t: (f(w, *p), float(w) * t[0]), nondiff_argnums=(0,))
    else:
        f.defvjp(
            lambda w, x: (f(w, x), None), lambda w, _, ct: (float(w) * ct,), nondiff_argnums=(0,)
        )
    w = jnp.float32(2)
    g = jax.jit(jax.vmap(jax.grad(lambda x: f.where(x > 0, w, x, otherwise=0.0))))
    np.testing.assert_array_equal(g(X), np.where(NEEDED, 2, 0))


def test_call_that_is_the_same_for_all_elements_stays_one_call():
    calls = []
    table = jaxcb.io(lambda: (calls.append(1), np.float32(2))[1], result=lambda: jnp.float32(0))
    scale = jaxcb.pure(lambda s: 3 * s, result="s", vmap_method=None)
    f = jaxcb.pure(np.sin, result="x")
    f.defjvp(lambda p, t: (f(*p), table() * scale(np.float32(1)) * t[0]))
    g = jax.jit(jax.vmap(jax.grad(lambda x: f.where(x > 0, x, otherwise=0.0))))
    np.testing.assert_array_equal(g(X), np.where(NEEDED, 6, 0))
    assert len(calls) == 1


def test_host_function_that_calls_a_callback_does_not_see_the_mask_of_a_rule():
    inner = jaxcb.pure(lambda x: 2 * x, result="x")
    with pytest.warns(jaxcb.JaxInHostFunctionWarning):
        slope = jaxcb.pure(lambda x: np.float32(inner(x)), result="x")
    f = jaxcb.pure(np.sin, result="x")
    f.defjvp(lambda p, t: (f(*p), slope(*p) * t[0]))
    g = jax.vmap(jax.grad(lambda x: f.where(x > 0, x, otherwise=0.0)))
    np.testing.assert_array_equal(g(X), np.where(NEEDED, 2 * X, 0))


@pytest.mark.long
def test_no_tracer_leaks_from_a_masked_rule():
    with jax.checking_leaks():
        sine = Sine()
        in_jit(sine)
        jax.jit(jax.vmap(jax.grad(sine)))(X)
        jax.vmap(jax.grad(sine))(X)


def test_eager_rules_compile_nothing_the_second_time():
    sine = Sine()
    sine.f.defjvp(lambda p, t: (sine.f(*p), jnp.clip(sine.slope(*p), -1, 1) * t[0]))
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **more: compiled.append(name) if "compile" in name else None
    )
    for run in (jax.vmap(jax.grad(sine)), lambda x: jax.grad(sine)(x[0])):
        run(X)
        compiled.clear()
        run(X)
        assert not compiled


def test_masked_call_of_a_method():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @jaxcb.pure(result=lambda self, x: x)
        def scaled(self, x):
            return np.float32(self.scale * x)

    found = jax.vmap(lambda x: Model(2).scaled.where(x > 0, x, otherwise=0))(X)
    np.testing.assert_array_equal(found, np.where(NEEDED, 2 * X, 0))


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


@pytest.mark.long
def test_derivative_with_respect_to_otherwise():
    sine = Sine()
    plain(sine)
    g = lambda x, y: sine.f.where(x > 0, x, otherwise=y**2)  # noqa: E731
    found = jax.jit(jax.vmap(jax.grad(g, argnums=1)))(X, X)
    np.testing.assert_allclose(found, np.where(NEEDED, 0, 2 * X))
    assert not sine.calls
