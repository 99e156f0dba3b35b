"""`check` finds each violation of a contract and shows the values, without false alarms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active
from tests._vmap_methods import TOGETHER
from tests.capabilities.lint._correct import CORRECT, register

from ._planted import PLANTED, X, not_batch_aware, pure


def only(callback, *args, **kwargs):
    """Return the only finding of a check, and assert that there is exactly one."""
    found = jaxcb.check(callback, *args, **kwargs)
    assert not found.ok, found
    (finding,) = found.findings
    return finding


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_violation_is_the_only_finding(plant):
    callback, *args = plant()
    kind, what = PLANTED[plant]
    finding = only(callback, *args)
    assert finding.kind == kind
    with pytest.raises(AssertionError, match=what):
        raise AssertionError(finding.what)
    assert finding.advice.endswith(".")


@pytest.mark.parametrize("name", CORRECT)
def test_correct_function_has_no_findings(name):
    callback, args = register(name)
    found = jaxcb.check(callback, *args)
    assert found.ok, found
    assert {"source", "declared result", "same inputs twice"} <= set(found.kept)


RULED = {
    "sin": (np.sin, lambda x, dx: jnp.cos(x) * dx, X),
    "sin at zero": (np.sin, lambda x, dx: jnp.cos(x) * dx, np.float32([0.0, 1e-3])),
    "square at its minimum": (np.square, lambda x, dx: 2 * x * dx, np.float32(0.0)),
    "constant": (np.ones_like, lambda x, dx: 0 * dx, X),
    "exp": (np.exp, lambda x, dx: jnp.exp(x) * dx, np.float32([-30.0, 10.0])),
    "large": (lambda x: 1e6 * x**3, lambda x, dx: 3e6 * x**2 * dx, np.float32([0.1, 100.0])),
    "tiny": (lambda x: 1e-9 * np.cos(x), lambda x, dx: -1e-9 * jnp.sin(x) * dx, X),
    "gamma": (
        scipy.special.gammaln, lambda x, dx: jax.scipy.special.digamma(x) * dx, X + 3
    ),
    "half": (np.tanh, lambda x, dx: (1 - jnp.tanh(x) ** 2) * dx, X.astype(np.float16)),
    "in float32": (
        lambda x: np.sin(x.astype(np.float32)), lambda x, dx: jnp.cos(x) * dx, X
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULED)
def test_correct_rule_has_no_findings(name):
    function, derivative, x = RULED[name]
    callback = jaxcb.pure(lambda x: function(x), result="x")
    callback.defjvp(lambda p, t: (callback(*p), derivative(p[0], t[0])))
    found = jaxcb.check(callback, x)
    assert found.ok and "derivative rule" in found.kept, found


def test_correct_reverse_rule_with_a_static_argument_has_no_findings():
    @pure(result=(X, X[0]))
    def both(x, y, scale):
        return scale * np.sin(x) * y, (x * y).sum()

    both.defvjp(
        lambda x, y, scale: (both(x, y, scale), (x, y)),
        lambda scale, kept, g: (
            scale * g[0] * jnp.cos(kept[0]) * kept[1] + g[1] * kept[1],
            (scale * g[0] * jnp.sin(kept[0])).sum() + g[1] * kept[0].sum(),
        ),
        nondiff_argnums=(2,),
    )
    found = jaxcb.check(both, X, np.float32(2), 3)
    assert found.ok and "derivative rule" in found.kept, found


def test_derivative_at_a_kink_is_not_checked():
    absolute = pure()(lambda x: np.abs(x))
    absolute.defjvp(lambda p, t: (absolute(*p), jnp.sign(p[0]) * t[0]))
    found = jaxcb.check(absolute, np.float32([0.0]))
    assert found.ok and "kink" in found.left_out["derivative rule"]
    assert "derivative rule" in jaxcb.check(absolute, np.float32([1.0])).kept


def test_correct_vmap_methods_are_listed():
    every = dict.fromkeys(TOGETHER, True)
    assert jaxcb.check(pure(result=X)(np.sin), X).vmap_methods == every
    cube = pure(result=lambda x: x)(functools.partial(np.power, 3))
    assert jaxcb.check(cube, X).vmap_methods == every
    # np.add broadcasts the batch axis of y against the last axis of x.
    both = pure(result=lambda x, y: x)(np.add)
    assert not any(jaxcb.check(both, X, np.float32(1)).vmap_methods.values())


MASKS = [((0, 0),), ((0, None),), ((None, 0),), ((0, None), (None, 0))]
# legacy_vectorized cannot distinguish the axes of two arguments, so this is not a finding.
BATCHES = [(m, masks) for m in ("expand_dims", "broadcast_all") for masks in MASKS]
BATCHES += [("legacy_vectorized", masks) for masks in MASKS[:-1]]


@pytest.mark.parametrize(("method", "masks"), BATCHES)
def test_check_tries_the_shapes_that_vmap_makes(method, masks):
    """`check` has tried every shape that jax.vmap passes to the host function."""
    tried, seen = set(), set()

    @pure(result=X, vmap_method=method)
    def add(x, y):
        seen.add((x.shape, y.shape))
        return x + y[..., None]

    jaxcb.check(add, X, np.float32(1))
    tried, seen = set(seen), set()
    function, x, y = lambda x, y: add(x, y), X, np.float32(1)
    for size, axes in zip((3, 2), masks, strict=False):
        function = jax.vmap(function, axes)
        x, y = (np.stack([z] * size) if axis == 0 else z for z, axis in zip((x, y), axes))  # noqa: B905
    try:
        function(x, y)
    except jax.errors.JaxRuntimeError:  # the shapes do not fit, but the function recorded them
        assert method != "broadcast_all"
    assert seen and seen <= tried


def test_calls_of_a_check_are_not_recorded_and_recording_continues():
    double = pure()(lambda x: 2 * x)
    double.defjvp(lambda p, t: (double(*p), 2 * t[0]))
    with jaxcb.record() as r:
        recorder = active()
        double(X)
        assert jaxcb.check(double, X).ok
        assert active() is recorder
        double(X)
    assert len(r.recording) == 2
    assert jaxcb.check(double, X).ok and active() is None


@pytest.mark.parametrize("flavor", [jaxcb.io, jaxcb.debug])
def test_function_with_effects_is_called_once(flavor, capsys):
    calls = []

    def show(x):
        calls.append(x)
        print("saw")
        return x

    callback = flavor(show, result="x") if flavor is jaxcb.io else flavor(show)
    assert jaxcb.check(callback, X).ok
    assert len(calls) == 1 and capsys.readouterr().out == "saw\n"
    assert not calls[0].flags.writeable


def test_wrong_result_of_an_io_callback_is_found():
    assert only(jaxcb.io(lambda x: x[:1], result="x"), X).kind == "declared result"


def test_print_found_in_the_source_is_not_reported_twice():
    with pytest.warns(jaxcb.ImpureFunctionWarning, match="prints"):

        @pure()
        def loud(x):
            print("loud")
            return x

    found = jaxcb.check(loud, X)
    assert [finding.kind for finding in found.findings] == ["source"]
    assert "no printing" not in found.kept


def test_check_takes_jax_arrays_keywords_pytrees_and_static_arguments():
    @jaxcb.pure(result="tree['x']", arrays="jax")
    def pick(tree, mode, *, scale):
        assert isinstance(tree["x"], jax.Array) and mode == "sum"
        return np.asarray(tree["x"]) * np.asarray(scale)

    found = jaxcb.check(pick, {"x": jnp.ones(3)}, "sum", scale=2.0)
    assert found.ok and 'arrays="jax"' in found.left_out["no JAX inside"], found


@pytest.mark.parametrize("wrong", [np.sin, 3, jaxcb.tap(lambda x: None)])
def test_check_of_what_is_not_a_callback_is_an_error(wrong):
    with pytest.raises(TypeError, match=r"cannot check .* Write check\(f, x\)"):
        jaxcb.check(wrong, X)


def test_repr_and_html_show_what_was_checked_and_found():
    found = jaxcb.check(not_batch_aware()[0], X)
    text = repr(found)
    assert text.startswith("<lambda> · pure · 1 finding\n  ✕ vmap contract: under vmap_method=")
    assert "✓ source, declared result, same inputs twice" in text
    assert "not checked: derivative rule (it has no rule)" in text
    html = found._repr_html_()
    assert "&lt;lambda&gt;" in html and "<b>vmap contract</b>" in html
    assert repr(jaxcb.check(pure()(np.sin), X)).startswith("sin · pure · no findings\n")


@pytest.mark.kept
@pytest.mark.parametrize("arrays", ["numpy", "jax"])
def test_a_typed_prng_key_is_an_argument(arrays):
    def drawn(x, key):
        data = key if arrays == "numpy" else jax.random.key_data(key)
        return np.float32(x) + np.asarray(data).reshape(-1)[-1] % 5

    callback = jaxcb.pure(drawn, result="x", arrays=arrays)
    for key in (jax.random.key(3), jax.random.key(3, impl="rbg")):
        found = jaxcb.check(callback, np.float32(1), key)
        assert "declared result" in found.kept and "same inputs twice" in found.kept, str(found)
