"""`check` finds each violation of a contract and shows the values, without false alarms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


@pytest.mark.parametrize("flavor", ["io", "debug", "buffer"])
def test_function_with_effects_is_called_once_and_shows_what_it_prints(flavor, capsys):
    calls = []

    def show(*arrays):
        calls.append(arrays[-1])
        print("saw")
        return X

    if flavor == "buffer":
        fill = lambda out, x: np.copyto(out, show(x))  # noqa: E731
        callback = jaxcb.buffer(fill, result="x", has_side_effect=True)
    else:
        callback = jaxcb.io(show, result=X) if flavor == "io" else jaxcb.debug(show)
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
