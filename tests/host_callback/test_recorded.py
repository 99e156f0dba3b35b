"""Taps, prints and calls are recorded and explained like other callbacks, with the flavor tap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb
from tests.interface import WHOLE_BATCH, Recording, VmapLevel, summarize, to_mimebundle


def look(arg, transforms): ...


def recorded(f, *args):
    with jaxcb.record() as r:
        jax.block_until_ready(f(*args))
        jax.effects_barrier()
    return r.recording


def statuses(recording):
    return [(o.site.function, o.status, o.compiled) for o in recording.outcomes]


def test_tap_print_and_call_each_have_a_site():
    class Nothing:
        def write(self, text): ...

    def f(x):
        x = hcb.id_tap(look, x)
        x = hcb.id_print(x, output_stream=Nothing())
        return hcb.call(np.sin, x, result_shape=x)

    recording = recorded(jax.jit(f), 1.0)
    assert statuses(recording) == [("look", "kept", 1), ("id_print", "kept", 1), ("sin", "kept", 1)]
    first = f.__code__.co_firstlineno + 1
    sites = [outcome.site for outcome in recording.outcomes]
    assert [(s.flavor, s.line) for s in sites] == [("tap", first + n) for n in range(3)]
    assert {s.file for s in sites} == {__file__}
    assert [s.source.partition("=")[0] for s in sites[:2]] == ["x ", "x "]
    assert len(recording) == 3


def test_recorded_tap_has_no_result_and_call_has_one():
    f = lambda x: hcb.call(np.sin, hcb.id_tap(look, x), result_shape=x)  # noqa: E731
    tap, call = recorded(f, np.ones(3, np.float32)).lowered
    assert ([a.shape for a in tap.operands], tap.results) == ([(3,)], ())
    assert [a.shape for a in call.results] == [(3,)]


def test_each_vmap_is_a_level_of_method_whole_batch():
    f = lambda x, y: hcb.id_tap(look, (x, y))  # noqa: E731
    g = jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, 0))
    recording = recorded(jax.jit(g), np.ones(2), np.ones((2, 3)))
    (fact,) = recording.lowered
    assert fact.levels == (
        VmapLevel(3, WHOLE_BATCH, (False, True)),
        VmapLevel(2, WHOLE_BATCH, (True, True)),
    )
    assert len(recording) == 1
    text = to_mimebundle(recording)[0]["text/plain"]
    assert "vmap 2 × vmap 3 (unbatched, batched), whole batch" in text
    assert "(2,), (2, 3) → nothing" in text
    assert Recording.from_json(recording.to_json()).lowered[0].levels == fact.levels


def test_failed_tap_is_reported():
    def boom(arg, transforms):
        raise ValueError("no luck")

    recording = recorded(jax.jit(lambda x: hcb.id_tap(boom, x) + 1), 1.0)
    with pytest.raises(hcb.CallbackException):
        hcb.barrier_wait()
    assert [call.error for call in recording] == ["ValueError: no luck"]
    assert [sample.failed for sample in recording.sample_values] == [True]
    (summary,) = summarize(recording)
    assert list(summary.errors) == ["ValueError: no luck"]


def test_unused_equal_and_loop_invariant_taps_are_all_kept():
    def f(x):
        hcb.id_tap(look, x)
        hcb.id_tap(look, x)
        return lax.fori_loop(0, 3, lambda i, c: (hcb.id_tap(look, 7), c + x)[1], x)

    recording = recorded(jax.jit(f), 1.0)
    assert statuses(recording) == [("look", "kept", n) for n in (1, 1, 3)]
    assert len(recording) == 5


PREDICATES = {"plain": (lambda f: f, 1), "batched": (jax.vmap, jnp.arange(3))}


@pytest.mark.parametrize(("around", "given"), PREDICATES.values(), ids=PREDICATES)
def test_tap_in_a_predicate_is_kept(around, given):
    """JAX lowers the predicate before the loop and in it; this must not be reported as hoisted."""
    f = lambda x: lax.while_loop(  # noqa: E731
        lambda x: hcb.id_tap(look, x < 2), lambda x: x + 1, x
    )
    assert statuses(recorded(jax.jit(around(f)), given)) == [("look", "kept", None)]


def test_tap_without_leaves_is_reported_as_hoisted_under_grad():
    """Only a tap whose argument has no leaves is hoisted out of a differentiated scan by JAX."""

    def f(x):
        def step(c, _):
            hcb.id_tap(look, ())
            return c * hcb.id_tap(look, x), None

        return lax.scan(step, 1.0, None, length=3)[0]

    recording = recorded(jax.jit(jax.grad(f)), 2.0)
    reported = [(o.status, o.written, o.compiled) for o in recording.outcomes]
    assert reported == [("hoisted", 3, 1), ("kept", 3, 3)]
    assert len(recording) == 4


def test_matrix_lists_refused_transformations(seen):
    f = lambda x: hcb.call(np.sin, hcb.id_tap(seen, x), result_shape=x)  # noqa: E731
    matrix = jaxcb.explain_matrix(f)(1.0)
    assert set(matrix.columns) == {"jit", "scan"}
    assert set(matrix.refused) == {"vmap", "grad", "hessian", "remat"}
    matrix = jaxcb.explain_matrix(lambda x: hcb.id_tap(seen, x))(1.0)
    compiled = {name: r.outcomes[0].compiled for name, r in matrix.columns.items()}
    assert compiled == {"jit": 1, "vmap": 1, "grad": 1, "hessian": 1, "scan": 5, "remat": 2}
    assert seen.calls == []


def test_eager_taps_are_recorded():
    recording = recorded(lambda: [hcb.id_tap(look, n) for n in range(3)])
    assert len(recording) == 3
    (fact,) = recording.lowered  # all calls have the same lowered site
    assert (fact.site.flavor, fact.program) == ("tap", None)


def test_disabled_removes_taps(seen):
    f = jax.jit(lambda x: hcb.id_tap(seen, x) + 1)
    with jaxcb.disabled():
        assert float(f(1.0)) == 2.0
        exported = jax.export.export(f)(1.0)
        assert float(hcb.id_tap(seen, 1.0)) == 1.0
    assert float(exported.call(1.0)) == 2.0
    assert seen.calls == []
    with pytest.raises(NotImplementedError, match="cannot export"):
        jax.export.export(jax.jit(lambda x: hcb.id_tap(seen, x)))(1.0)


def test_disabled_removes_a_call_whose_result_is_unused():
    f = jax.jit(lambda x: (hcb.call(np.sin, x, result_shape=x), x)[1])
    with jaxcb.disabled():
        assert float(f(1.0)) == 1.0
