"""The comparison with JAX finds mistakes in a rule, a lowering or the loop over elements."""

import jax
import numpy as np
import pytest

from jupyter_jaxcb.stack.dispatch import _crossing, _elements
from jupyter_jaxcb.stack.flavors import _debug, _io, _pure
from jupyter_jaxcb.stack.lowering import _host_call
from jupyter_jaxcb.stack.results import _expressions

from ._planted import agrees, first_disagreement

pytestmark = pytest.mark.fuzz


def _skip_the_last(calls):
    return calls[:-1]


def _make_the_first_twice(calls):
    return calls[:1] + calls


def _reverse(calls):
    return calls[::-1]


def _keep(calls):
    return calls


def _is_one_loop(callbacks):
    (callback, *others) = callbacks
    looped = callback.method == "sequential" or callback.flavor == "io"
    return not others and looped and not callback.ordered and callback.used and callback.results


def _first_operand_late(calls):
    """Give every call the first operand of the previous call."""
    return [(before[0], *call[1:]) for before, call in zip(calls[-1:] + calls, calls, strict=False)]


@pytest.mark.parametrize(
    ("change_calls", "change_results"),
    [
        (_skip_the_last, _keep),
        (_make_the_first_twice, _keep),
        (_keep, _reverse),
        (_reverse, _keep),
        (_reverse, _reverse),
        (_first_operand_late, _keep),
    ],
    ids=["one skipped", "one twice", "results reversed", "arguments reversed", "order reversed",
         "operands shifted"],
)  # fmt: skip
def test_mistake_in_the_loop_over_elements_is_found(change_calls, change_results, monkeypatch):
    elements, by_element = _elements.ElementSchedule.elements, _elements.ElementSchedule.by_element
    monkeypatch.setattr(
        _elements.ElementSchedule,
        "elements",
        lambda self, ops: iter(change_calls(list(elements(self, ops)))),
    )
    monkeypatch.setattr(
        _elements.ElementSchedule,
        "by_element",
        lambda self, called: by_element(self, change_results(called)),
    )
    _is_found(monkeypatch, ("vmap", "jit"), _is_one_loop)


def _some(least=1, **fields):
    """Return a predicate: at least `least` callbacks have these fields."""

    def may_show(callbacks):
        return sum(fields.items() <= vars(callback).items() for callback in callbacks) >= least

    return may_show


def _stale_token(ctx, ordered, token):
    """Set the token so that the next ordered callback does not wait for this one."""
    ctx.set_tokens_out(ctx.tokens_in)


@pytest.mark.parametrize("kinds", [("jit",), ("scan", "jit")])
@pytest.mark.parametrize("flavor", ["io", "debug"])
def test_stale_token_is_found(kinds, flavor, monkeypatch):
    monkeypatch.setattr(_host_call, "_set_token", _stale_token)
    _is_found(monkeypatch, kinds, _some(2, flavor=flavor, ordered=True))


@pytest.mark.parametrize("module", [_io, _debug])
def test_token_that_is_not_threaded_is_found(module, monkeypatch):
    lower = module.lower_host_call

    def unordered(ctx, *operands, ordered, **params):
        results = lower(ctx, *operands, ordered=None, **params)
        if ordered is not None:
            ctx.set_tokens_out(ctx.tokens_in)
        return results

    monkeypatch.setattr(module, "lower_host_call", unordered)
    flavor = "io" if module is _io else "debug"
    _is_found(monkeypatch, ("jit",), _some(2, flavor=flavor, ordered=True))


@pytest.mark.parametrize("module", [_io, _debug])
def test_side_effect_missing_from_the_lowering_is_found(module, monkeypatch):
    lower = module.lower_host_call
    monkeypatch.setattr(
        module,
        "lower_host_call",
        lambda *args, **params: lower(*args, **{**params, "has_side_effect": False}),
    )
    flavor = "io" if module is _io else "debug"
    _is_found(monkeypatch, ("jit",), _some(flavor=flavor, ordered=False))


def test_io_effect_that_a_derivative_drops_is_found(monkeypatch):
    monkeypatch.setattr(_io, "_kept", _io.jax_compat.jax_effect("io", False))
    _is_found(monkeypatch, ("grad", "scan"), _some(flavor="io"))


def test_debug_effect_that_a_derivative_drops_is_found(monkeypatch):
    monkeypatch.setitem(
        _debug.jax_compat.partial_eval_jaxpr_custom_rules,
        _debug.debug_callback_p,
        lambda saveable, unknown, instantiated, eqn: (eqn, None, [], [], []),
    )
    _is_found(monkeypatch, ("grad", "checkpoint"), _some(flavor="debug"))


def test_weak_type_that_a_result_may_not_have_is_found(monkeypatch):
    def as_declared(leaf, result):
        weak = getattr(leaf, "weak_type", False)
        return jax.core.ShapedArray(leaf.shape, np.dtype(leaf.dtype), weak_type=weak)

    monkeypatch.setattr(_expressions, "_leaf_aval", as_declared)
    _is_found(monkeypatch, ("jit",), _some(declared="weak", flavor="pure"))


def test_zero_tangent_instead_of_an_error_is_found(monkeypatch):
    def zero_tangents(primals, tangents, **params):
        results = _pure.pure_callback_p.bind(*primals, **params)
        return results, [jax.numpy.zeros_like(x) for x in results]

    monkeypatch.setitem(_pure.jax_compat.ad.primitive_jvps, _pure.pure_callback_p, zero_tangents)
    _is_found(monkeypatch, ("jvp", "grad"), _some(flavor="pure", stopped=False, ruled=False))


def test_call_missing_from_the_recording_is_found(monkeypatch):
    monkeypatch.setattr(_crossing, "active", lambda: None)
    assert "calls recorded" in _is_found(monkeypatch, ("jit",))


def _is_found(monkeypatch, kinds, may_show=bool):
    program, difference = first_disagreement(kinds, may_show=may_show)
    monkeypatch.undo()
    jax.clear_caches()
    assert agrees(program)
    return difference
