"""JAX's vmapped callbacks make one crossing or custom call per batch element: jax-ml/jax#24756.

These tests count operations in the compiled program rather than measure time. JAX's program loops
around the custom call or contains one custom call per element; ours makes one crossing and loops
over the elements on the host.
"""

import functools

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._both import OURS, THEIRS

ELEMENTS = 200
FEW = 40  # for programs in which JAX compiles one custom call per batch element
SCALAR = jax.ShapeDtypeStruct((), np.float32)


def double(x):
    return np.asarray(x) * 2


def ignore(x):
    pass


def program(callbacks, flavor, method=None, host=None):
    if flavor == "debug":
        return jax.jit(jax.vmap(functools.partial(callbacks.debug_callback, host or ignore)))
    if flavor == "io":
        return jax.jit(jax.vmap(functools.partial(callbacks.io_callback, host or double, SCALAR)))
    call = functools.partial(callbacks.pure_callback, host or double, SCALAR, vmap_method=method)
    return jax.jit(jax.vmap(call))


def custom_calls(f, elements):
    """Count the custom calls in the optimized program, where XLA has inlined all functions."""
    compiled = f.lower(np.arange(elements, dtype=np.float32)).compile().as_text()
    return compiled.count('custom_call_target="xla_ffi_python')


def loops(f, elements):
    return f.lower(np.arange(elements, dtype=np.float32)).as_text().count("stablehlo.while")


UNROLLED = {"pure, unrolled": ("pure", "sequential_unrolled"), "debug": ("debug",)}
LOOPED = {"pure": ("pure", "sequential"), "io": ("io",)}


@pytest.mark.parametrize("flavor", UNROLLED.values(), ids=UNROLLED)
def test_jax_compiles_a_custom_call_per_element_and_ours_only_one(flavor):
    assert custom_calls(program(THEIRS, *flavor), FEW) == FEW
    assert custom_calls(program(OURS, *flavor), FEW) == 1
    assert custom_calls(program(OURS, *flavor), ELEMENTS) == 1


@pytest.mark.parametrize("flavor", LOOPED.values(), ids=LOOPED)
def test_jax_compiles_a_loop_around_the_custom_call_and_ours_none(flavor):
    theirs, ours = program(THEIRS, *flavor), program(OURS, *flavor)
    assert (loops(theirs, ELEMENTS), custom_calls(theirs, ELEMENTS)) == (1, 1)
    assert (loops(ours, ELEMENTS), custom_calls(ours, ELEMENTS)) == (0, 1)


def test_no_method_or_flavor_of_ours_compiles_a_loop():
    for flavor in (*UNROLLED.values(), *LOOPED.values()):
        assert loops(program(OURS, *flavor), ELEMENTS) == 0


ALL = UNROLLED | LOOPED


@pytest.mark.parametrize("flavor", ALL.values(), ids=ALL)
def test_one_crossing_makes_the_calls_of_all_elements(flavor):
    """The host function gets the same arguments as with JAX."""
    xs = np.arange(ELEMENTS, dtype=np.float32)
    seen = {"theirs": [], "ours": []}

    def host(whose):
        def note(x):
            seen[whose].append(np.asarray(x).item())
            return None if flavor[0] == "debug" else double(x)

        return note

    method = flavor[1] if flavor[1:] else None
    few = xs[:FEW]  # JAX's debug callback compiles slowly
    theirs = program(THEIRS, flavor[0], method, host("theirs"))(few)
    jax.block_until_ready(theirs)
    jax.effects_barrier()
    with jaxcb.record() as r:
        ours = program(OURS, flavor[0], method, host("ours"))(xs)
        jax.block_until_ready(ours)
    assert sorted(seen["theirs"]) == few.tolist()
    assert sorted(seen["ours"]) == xs.tolist()
    if flavor[0] != "debug":
        np.testing.assert_array_equal(theirs, few * 2)
        np.testing.assert_array_equal(ours, xs * 2)
    calls = r.recording.calls
    assert len(calls) == ELEMENTS
    assert len(np.unique(calls["crossing"])) == 1
    assert sorted(calls["element"].tolist()) == list(range(ELEMENTS))
    (lowered,) = r.recording.lowered
    assert lowered.elements == ELEMENTS
