"""After the block, JAX is restored, and programs compiled inside still work."""

import threading

import jax
import pytest
from jax._src import buffer_callback as _buffer
from jax._src import callback as _callback
from jax._src import debugging as _debugging
from jax._src.interpreters import batching, mlir

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import FLAVORS, observed, one

flavors = pytest.mark.parametrize("flavor", FLAVORS)
PRIMITIVES = (
    _callback.pure_callback_p,
    _callback.io_callback_p,
    _debugging.debug_callback_p,
    _debugging.debug_print_p,
    _buffer.buffer_callback_p,
)


def jax_internals():
    """Return copies of all tables of JAX that `observe_jax` may change."""
    tables = [vars(p) for p in PRIMITIVES]
    tables += [vars(module) for module in (_callback, _debugging, _buffer)]
    tables += [batching.fancy_primitive_batchers, mlir._lowerings]
    tables += mlir._platform_specific_lowerings.values()
    if isinstance(batching.primitive_batchers, dict):
        tables.append(batching.primitive_batchers)
    return [dict(table) for table in tables]


def test_jax_is_patched_inside_the_block_and_restored_after_it():
    before = jax_internals()
    with jaxcb.observe_jax():
        assert jax_internals() != before
        with jaxcb.observe_jax():
            pass
        assert jax_internals() != before
    assert jax_internals() == before


def test_jax_is_restored_after_an_exception():
    before = jax_internals()
    with pytest.raises(KeyError), jaxcb.observe_jax():
        raise KeyError
    assert jax_internals() == before


def test_jax_is_restored_after_overlapping_blocks_in_two_threads():
    before, first_in, second_in = jax_internals(), threading.Event(), threading.Event()

    def second():
        first_in.wait(30)
        with jaxcb.observe_jax():
            second_in.set()
            first_out.wait(30)
            assert jax_internals() != before

    first_out = threading.Event()
    thread = threading.Thread(target=second)
    thread.start()
    with jaxcb.observe_jax():
        first_in.set()
        second_in.wait(30)
    first_out.set()
    thread.join()
    assert jax_internals() == before


def test_patches_made_by_others_inside_the_block_are_left_in_place():
    primitive = _callback.pure_callback_p
    with jaxcb.observe_jax():
        ours = primitive.bind
        primitive.bind = lambda *args, **params: ours(*args, **params)
        theirs = primitive.bind
    try:
        assert primitive.bind is theirs
        assert float(jax.jit(FLAVORS["jax pure"])(one())) == 2
    finally:
        del primitive.bind


@flavors
def test_program_compiled_inside_still_works_and_is_not_recorded_outside(flavor):
    f = jax.jit(FLAVORS[flavor])
    with jaxcb.observe_jax():
        first = f(one())
        jax.effects_barrier()
    with jaxcb.record() as r:
        again = f(one())
    assert again == first
    assert len(r.recording) == 0


def test_program_traced_inside_and_compiled_outside_is_not_recorded():
    inner = jax.jit(FLAVORS["jax pure"])
    with jaxcb.observe_jax():
        jax.make_jaxpr(inner)(one())
    with jaxcb.record() as r:
        assert float(jax.jit(lambda x: inner(x))(one())) == 2
    assert (len(r.recording), r.recording.outcomes) == (0, ())


def test_program_compiled_inside_and_run_outside_has_no_status():
    f = jax.jit(lambda x: FLAVORS["jax io"](x))
    observed(lambda: f(one()))
    with jaxcb.record() as r:
        jax.block_until_ready(f(one()))
    assert r.recording.outcomes == ()


def test_statuses_of_a_program_are_reported_in_every_observed_block_that_runs_it():
    def g(x):
        FLAVORS["jax pure"](x)  # elided
        return FLAVORS["jax io"](x)

    f = jax.jit(g)
    observed(lambda: f(one()))
    for _ in range(2):
        with jaxcb.record():  # a notebook records all its cells
            _, recording = observed(lambda: f(one()))
        assert [str(outcome.status) for outcome in recording.elisions] == ["unused"]


@flavors
def test_program_compiled_inside_is_recorded_in_a_later_block(flavor):
    f = jax.jit(FLAVORS[flavor])
    observed(lambda: f(one()))
    _, recording = observed(lambda: f(one()))
    (call,) = recording
    assert recording.lowered[call.lowered].program.name.startswith("jit_")
