"""Machine code tests the mask itself, and calls the function for the needed elements."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests._vmap_methods import TOGETHER

from ..masked._nests import OTHER, expected, facts, mapped, nests, weigh

X = np.arange(6, dtype=np.float32)
NEEDED = X % 2 == 1


def shifted(x, y):
    return x + y


def write(out, x, y):
    out[...] = x + y


FLAVORS = {
    "pure": jaxcb.pure(shifted, result="x", compile="numba"),
    "io": jaxcb.io(shifted, result="x", compile="numba"),
    "buffer": jaxcb.buffer(write, result="x", compile="numba"),
}


@settings(max_examples=25)
@given(nests(dtypes=("float32",), shapes=((), (2,), (0,))), st.sampled_from([*FLAVORS]))
def test_values_and_calls_are_those_of_the_needed_elements(nest, flavor):
    sizes, maps, arrays = nest
    f = FLAVORS[flavor]
    # So that the result has the shape of x, also without broadcasting.
    call = mapped(lambda mask, x, y: f.where(mask, x, y.sum(), otherwise=OTHER), maps)
    wanted, calls = expected(sizes, maps, arrays, weigh)
    with jaxcb.record() as r:
        found = jax.block_until_ready(jax.jit(call)(*arrays))
    assert facts(np.asarray(found)) == facts(wanted)
    if 0 in wanted.shape:
        return
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (int(np.prod(sizes)), len(calls))
    mask, on = arrays[0], [each[0] == "1" for each in maps]
    own = [size if each else 1 for size, each in zip(sizes, on, strict=True)]
    needed = np.flatnonzero(np.broadcast_to(mask.reshape(own), sizes))
    elements = sorted(call.element for call in r.recording)
    assert elements == (needed.tolist() if sizes else [-1] * len(calls))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("flavor", ["pure", "io", "buffer"])
def test_function_runs_for_the_needed_elements_alone(flavor, jitted, note):
    seen, got = note

    def host(x):
        seen(x)
        return 2 * x

    def writing(out, x):
        seen(x)
        out[...] = 2 * x

    function = writing if flavor == "buffer" else host
    f = getattr(jaxcb, flavor)(function, result="x", compile="numba")
    program = jax.vmap(lambda m, x: f.where(m, x, otherwise=-1))
    program = jax.jit(program) if jitted else program
    for mask in (NEEDED, ~NEEDED, np.full(6, False), np.full(6, True)):
        got.clear()
        np.testing.assert_array_equal(program(mask, X), np.where(mask, 2 * X, -1))
        assert got == X[mask].tolist()


@pytest.mark.parametrize("flavor", ["pure", "buffer"])
@pytest.mark.parametrize("method", TOGETHER)
def test_one_call_for_a_batch_gets_the_needed_elements(flavor, method, note):
    seen, got = note

    def host(x):
        seen(x.size)
        return 2 * x

    def writing(out, x):
        seen(x.size)
        out[...] = 2 * x

    function = host if flavor == "pure" else writing
    f = getattr(jaxcb, flavor)(function, result="x", compile="numba", vmap_method=method)
    program = jax.jit(jax.vmap(jax.vmap(lambda m, x: f.where(m, x, otherwise=-1))))
    found = program(NEEDED.reshape(2, 3), X.reshape(2, 3))
    np.testing.assert_array_equal(found.ravel(), np.where(NEEDED, 2 * X, -1))
    assert got == [3]
    program(np.full((2, 3), False), X.reshape(2, 3)).block_until_ready()
    assert got == [3]


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_function_that_cannot_be_compiled_is_an_error_of_jit(method):
    f = jaxcb.pure(lambda x: x + "no", result="x", compile="numba", vmap_method=method)
    program = jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=0)))
    with pytest.raises(TypeError, match="numba cannot compile"):
        program(NEEDED, X)


@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_failing_element_is_named_and_recorded(flavor, failure):
    def host(x):
        if x == 3:
            raise ValueError("no luck")
        return x

    f = getattr(jaxcb, flavor)(host, result="x", compile="numba")
    program = jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=0)))
    with jaxcb.record() as r:
        error, notes = failure(program, NEEDED, X)
    assert repr(error) == "ValueError('no luck')"
    assert "in call 2 since registration, in batch element 3" in notes
    assert [(c.element, c.error) for c in r.recording] == [(1, None), (3, "ValueError: no luck")]
    assert [(m.elements, m.needed) for m in r.recording.masks] == [(6, 3)]
    np.testing.assert_array_equal(program(~NEEDED, X), np.where(NEEDED, 0, X))


def test_replaced_function_is_compiled_although_no_element_needs_it():
    f = jaxcb.pure(lambda x: x + 1, result="x", compile="numba")
    program = jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=0)))
    np.testing.assert_array_equal(program(NEEDED, X), np.where(NEEDED, X + 1, 0))
    f.host.rebind(lambda x: x + 10)
    assert not program(np.full(6, False), X).any()
    np.testing.assert_array_equal(program(NEEDED, X), np.where(NEEDED, X + 10, 0))


def test_calls_of_a_branch_that_is_not_batched_are_counted():
    f = jaxcb.pure(lambda x: x / 2, result="x", compile="numba")
    program = jax.jit(
        lambda x: jax.lax.fori_loop(0, 5, lambda i, x: f.where(i % 2 == 0, x, otherwise=x), x)
    )
    with jaxcb.record() as r:
        assert float(program(8.0)) == 1
    assert [(c.element, c.crossing) for c in r.recording] == [(-1, 0), (-1, 1), (-1, 2)]
    assert [(m.elements, m.needed) for m in r.recording.masks] == [(5, 3)]
    assert all(call.start_ns <= call.end_ns for call in r.recording)


def test_compiled_callbacks_of_a_derivative_rule_run_for_the_needed_elements(note):
    seen, got = note

    def cosine(x):
        seen(x)
        return np.cos(x)

    sine = jaxcb.pure(np.sin, result="x")
    slope = jaxcb.pure(cosine, result="x", compile="numba")
    sine.defjvp(lambda p, t: (sine(*p), slope(*p) * t[0]))
    gradient = jax.grad(lambda x, m: sine.where(m, x, otherwise=3 * x))
    found = jax.jit(jax.vmap(gradient))(X, NEEDED)
    np.testing.assert_allclose(found, np.where(NEEDED, np.cos(X), 3), rtol=1e-6)
    assert got == [1, 3, 5]


def test_several_threads_count_the_calls_of_one_program():
    f = jaxcb.io(lambda x: 2 * x, result="x", compile="numba")
    program = jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=-1)))
    program(NEEDED, X)

    def run(shift):
        for n in range(50):
            mask = (X + shift + n) % 3 == 0
            np.testing.assert_array_equal(program(mask, X + n), np.where(mask, 2 * (X + n), -1))

    with jaxcb.record() as r:
        in_threads(run, range(4))
    assert len(r.recording) == 4 * 50 * 2
    assert [(m.elements, m.needed) for m in r.recording.masks] == [(4 * 50 * 6, 4 * 50 * 2)]
