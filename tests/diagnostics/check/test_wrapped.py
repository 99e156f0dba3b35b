"""`check` of a function finds the callbacks that it calls, and checks each with the values seen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._planted import X


def scaled():
    """Return a callback that keeps its contract for single calls, but not for batches."""
    return jaxcb.pure(result="x", vmap_method="expand_dims")(lambda x: x / x.max())


def cube(slope=3.0):
    callback = jaxcb.pure(result="x")(lambda x: x**3)
    callback.defjvp(lambda p, t: (callback(*p), slope * p[0] ** 2 * t[0]))
    return callback


np_log = jaxcb.pure(result="x")(np.log)


def in_scan(f):
    return lambda x: jax.lax.scan(lambda carry, _: (f(carry), None), x, length=3)[0]


WRAPS = {
    "a lambda": lambda f: lambda x: f(x) + 1,
    "a partial": functools.partial,
    "jit of vmap": lambda f: jax.jit(jax.vmap(f)),
    "vmap over the last axis": lambda f: jax.vmap(f, in_axes=-1),
    "two vmaps": lambda f: jax.vmap(jax.vmap(f)),
    "grad": lambda f: jax.jit(jax.grad(lambda x: f(cube()(x)).sum())),
    "scan": in_scan,
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > -9, f, lambda y: y, x),
}
BATCH = np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


@pytest.mark.parametrize("wrap", WRAPS)
def test_violation_is_found_through_a_wrapper(wrap):
    found = jaxcb.check(WRAPS[wrap](scaled()), BATCH)
    (finding,) = found.findings
    assert finding.kind == "vmap contract" and not found.ok
    assert "<lambda> · pure · 1 finding\n  ✕ vmap contract" in repr(found)
    assert "<b>vmap contract</b>" in found._repr_html_()


@pytest.mark.parametrize("wrap", ["a lambda", "jit of vmap", "two vmaps"])
def test_callback_gets_the_values_of_its_first_call_and_of_its_first_batch_element(wrap):
    seen = []

    @jaxcb.io(result="x")
    def log(x):
        seen.append(np.asarray(x))
        return x

    jaxcb.check(WRAPS[wrap](lambda x: log(x * 2)), BATCH)
    first = {"a lambda": BATCH, "jit of vmap": BATCH[0], "two vmaps": BATCH[0, 0]}[wrap]
    np.testing.assert_array_equal(seen[-1], 2 * first)


def test_callbacks_without_a_call_of_known_values_are_named_with_the_reason():
    masked = jaxcb.check(lambda x: cube()(np_log.where(False, x, otherwise=0.0)), X)
    assert masked.left_out == {"log": "its mask is not true for the first batch element"}
    assert jaxcb.check(lambda x: np_log.where(True, x, otherwise=0.0), X).left_out == {}
    traced = jaxcb.check(jax.checkpoint(cube()), X)
    assert traced.ok and traced.checks == ()
    assert "not checked: callback (JAX traces all of its calls" in repr(traced)


def test_error_of_a_host_function_is_a_finding_and_the_report_says_what_was_not_run():
    @jaxcb.pure(result="x")
    def fails(x):
        raise ValueError("no luck")

    found = jaxcb.check(lambda x: cube()(fails(x)), X)
    (finding,) = found.findings
    assert finding.what == "it fails on these arguments: ValueError: no luck"
    assert "ValueError" in found.left_out["what <lambda> calls next"]


def test_function_that_calls_no_registered_callback_is_refused_with_a_way_out():
    with pytest.raises(TypeError, match=r"cannot check sin: .* calls no registered callback.*"):
        jaxcb.check(jnp.sin, X)
    drop_in = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))
    with pytest.raises(TypeError, match=r"Register .* by @jaxcb.pure"):
        jaxcb.check(drop_in, X)
    with pytest.raises(ZeroDivisionError):
        jaxcb.check(lambda x: 1 / 0, X)


def test_each_callback_is_checked_once_in_the_order_of_the_calls():
    good, bad = cube(), scaled()
    found = jaxcb.check(lambda x: good(x) + good(bad(x)) + bad(x + 1), X)
    assert found.function == "<lambda>"
    assert [one.ok for one in found.checks] == [True, False]


def test_function_under_check_is_not_recorded():
    with jaxcb.record() as r:
        jaxcb.check(jax.jit(cube()), X)
    assert len(r.recording) == 0


def test_checks_of_several_callbacks_have_the_findings_of_each():
    good = jaxcb.pure(result="x")(lambda x: 2 * x)
    bad = jaxcb.pure(result="x", vmap_method="expand_dims")(lambda x: x / x.max())
    checks = jaxcb.check(lambda x: good(x) + bad(x), X)
    assert isinstance(checks, jaxcb.Checks) and not checks.ok
    assert [finding.kind for finding in checks.findings] == ["vmap contract"]
    assert jaxcb.check(lambda x: good(good(x)), X).findings == ()
    assert jaxcb.check(lambda x: good(good(x)), X).ok
