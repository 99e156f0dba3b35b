"""`observe_jax` records JAX's own callbacks: sites, statuses, batching, calls and errors."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import (
    FLAVORS,
    NAMES,
    STRUCT,
    double,
    double_into,
    line_of,
    look,
    observed,
    one,
    site_rows,
)
from tests.interface import Reason, advice_words, causes_of, forget_effects, summarize, to_text

flavors = pytest.mark.parametrize("flavor", FLAVORS)


@flavors
def test_call_in_a_program_is_recorded(flavor):
    bind = FLAVORS[flavor]
    assert site_rows(lambda: jax.jit(bind)(one())) == [(flavor, NAMES[flavor], "kept", 1)]


def test_site_is_the_line_of_the_bind():
    def f(x):
        y = x + 1
        return jax.pure_callback(double, STRUCT, y)

    _, recording = observed(lambda: jax.jit(f)(one()))
    (fact,) = recording.lowered
    assert (fact.site.file, fact.site.line) == (__file__, line_of(f, "pure_callback"))
    assert fact.program.name == "jit_f"


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_equal_prints_of_two_lines_are_distinguished(around, ordered, capsys):
    def f(x):
        jax.debug.print("x is {}", x, ordered=ordered)
        jax.debug.print("x is {}", x, ordered=ordered)

    _, recording = observed(lambda: around(f)(one()))
    lines = [(s.site.function, s.site.line, s.calls) for s in summarize(recording)]
    first = line_of(f, "def f") + 1
    assert lines == [("debug.print", first, 1), ("debug.print", first + 1, 1)]
    assert capsys.readouterr().out == "x is 1.0\nx is 1.0\n"


def test_names_are_those_of_user_functions():
    class Shown:
        def __call__(self, x):
            pass

    def run():
        io_callback(functools.partial(look), None, one())
        jax.debug.callback(Shown(), one())
        if jax.__version_info__ >= (0, 10, 2):
            jax.debug.callback(ordered=False)(look, one())

    names = {name for _, name, _, _ in site_rows(run)}
    assert names == {"look", "Shown"}


def test_unused_result_is_elided_with_reason_and_advice():
    def f(x):
        jax.pure_callback(double, STRUCT, x)
        return x

    _, recording = observed(lambda: jax.jit(f)(one()))
    (outcome,) = recording.elisions
    assert outcome.status == "unused"
    assert outcome.reason is Reason.UNUSED
    assert "io_callback" in advice_words(causes_of(outcome))
    assert len(recording) == 0


def test_callback_whose_result_xla_finds_unused_is_optimized_away():
    def f(x):
        return jnp.where(jnp.zeros((), bool), jax.pure_callback(double, STRUCT, x), x)

    assert site_rows(lambda: jax.jit(f)(one())) == [("jax pure", "double", "optimized_away", 0)]


def test_callback_in_a_branch_not_taken_is_not_reached():
    def f(x):
        return jax.lax.cond(x > 5, lambda x: jax.pure_callback(double, STRUCT, x), lambda x: x, x)

    assert site_rows(lambda: jax.jit(f)(one())) == [("jax pure", "double", "not_reached", 0)]


def test_io_that_jax_drops_from_a_differentiated_loop_is_reported_with_advice():
    def f(x):
        def step(x, i):
            io_callback(look, None, i)
            return jnp.sin(x), None

        return jax.lax.scan(step, x, jnp.arange(3))[0]

    _, recording = observed(lambda: jax.jit(jax.grad(f))(one()))
    (outcome,) = recording.elisions
    assert (outcome.site.flavor, outcome.status) == ("jax io", "unused")
    assert outcome.reason is Reason.IO_IN_DERIVATIVE
    assert "jupyter_jaxcb.io_callback" in advice_words(causes_of(outcome))


def test_io_that_jax_moves_out_of_a_differentiated_loop_is_hoisted():
    def f(x):
        def step(c, _):
            io_callback(lambda: None, None)
            return 2 * c, None

        return jax.lax.scan(step, x, None, length=4)[0]

    assert site_rows(lambda: jax.jit(jax.grad(f))(one())) == [("jax io", "<lambda>", "hoisted", 1)]


def test_callback_that_jax_drops_while_tracing_is_reported():
    def f(x):
        @jax.jit
        def inner(x):
            jax.pure_callback(double, STRUCT, jax.lax.stop_gradient(x))
            return x * x

        return inner(x)

    assert site_rows(lambda: jax.jit(jax.grad(f))(one())) == [("jax pure", "double", "unused", 0)]


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "legacy_vectorized"])
@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_batched_call_has_its_vmap_level(method, around):
    def f(x, y):
        return jax.pure_callback(lambda x, y: x + y, STRUCT, x, y, vmap_method=method)

    _, recording = observed(lambda: around(jax.vmap(f, in_axes=(0, None)))(jnp.ones(3), one()))
    (fact,) = {recording.lowered[call.lowered] for call in recording}
    assert len(recording) == 1
    assert [(level.size, level.method, level.batched) for level in fact.levels] == [
        (3, method, (True, False))
    ]


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_batch_elements_that_jax_loops_over_are_separate_calls(flavor):
    bind = FLAVORS[flavor]
    if flavor == "jax pure":
        bind = functools.partial(jax.pure_callback, double, STRUCT, vmap_method="sequential")
    _, recording = observed(lambda: jax.jit(jax.vmap(bind))(jnp.ones(3)))
    (summary,) = summarize(recording)
    assert (summary.calls, summary.notes) == (3, ())


def test_call_that_serves_several_batch_elements_is_noted():
    def f(x):
        return x + jax.pure_callback(double, STRUCT, np.float32(2))

    _, recording = observed(lambda: jax.jit(jax.vmap(f))(jnp.ones(3)))
    (summary,) = summarize(recording)
    assert summary.calls == 1
    assert summary.notes == ("no argument is batched: one call serves 3 batch elements",)


@pytest.mark.parametrize("bind", [jax.debug.callback, jax.debug.print], ids=["callback", "print"])
def test_eager_debug_calls_under_vmap_serve_one_element_each(bind, capsys):
    """JAX loops over the elements itself, so its calls have no batch axis."""
    what = "{}" if bind is jax.debug.print else lambda x: None
    _, recording = observed(lambda: jax.vmap(lambda x: (bind(what, x), x)[1])(jnp.ones(3)))
    (summary,) = summarize(recording)
    assert (summary.calls, summary.notes) == (3, ())


def test_equal_buffer_calls_that_jax_lowers_together_have_a_reason():
    def f(x):
        a = buffer_callback(double_into, STRUCT)(x)
        return a + buffer_callback(double_into, STRUCT)(x)

    returned_value, recording = observed(lambda: jax.jit(f)(one()))
    first, second = summarize(recording)
    assert float(returned_value) == 4
    assert (first.status, first.calls) == ("kept", 1)
    assert (second.status, second.calls) == ("unknown", 0)
    assert second.reason.startswith("JAX lowered it together with an equal call")


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_failed_call_is_recorded_with_its_error(flavor):
    def fail(x):
        raise ValueError("no luck")

    def f(x):
        if flavor == "jax pure":
            return jax.pure_callback(fail, STRUCT, x)
        if flavor == "jax io":
            return io_callback(fail, STRUCT, x)
        return jax.debug.callback(fail, x)

    with jaxcb.observe_jax() as recorded:
        with pytest.raises(Exception, match="no luck"):
            jax.block_until_ready(jax.jit(f)(one()))
            jax.effects_barrier()
    (call,) = recorded.recording
    assert call.error == "ValueError: no luck"


def test_callback_traced_before_and_compiled_inside_has_its_line():
    @jax.jit
    def inner(x):
        return jax.pure_callback(double, STRUCT, x)

    jax.make_jaxpr(inner)(one())
    _, recording = observed(lambda: jax.jit(lambda x: inner(x) + 1)(one()))
    (summary,) = summarize(recording)
    assert summary.site.line == line_of(inner.__wrapped__, "return")
    assert (summary.status, summary.calls) == ("kept", 1)


@pytest.mark.parametrize("flavor", ["jax pure", "jax io", "jax debug"])
def test_calls_of_a_program_compiled_before_are_counted_and_marked(flavor):
    f = jax.jit(lambda x: FLAVORS[flavor](x))
    jax.block_until_ready(f(one()))
    jax.effects_barrier()
    _, recording = observed(lambda: f(one()))
    (summary,) = summarize(recording)
    assert (summary.site.flavor, summary.site.function) == (flavor, NAMES[flavor])
    assert summary.site.line == (double if flavor != "jax debug" else look).__code__.co_firstlineno
    assert summary.calls == 1
    assert "jax.clear_caches()" in to_text(recording)


def test_our_callbacks_and_those_of_jax_are_in_one_recording():
    ours = jaxcb.pure(double, result=STRUCT)

    def f(x):
        return ours(x) + jax.pure_callback(double, STRUCT, x)

    found = site_rows(lambda: jax.jit(f)(one()))
    assert found == [("pure", "double", "kept", 1), ("jax pure", "double", "kept", 1)]


def test_callbacks_that_ours_use_internally_are_not_recorded():
    forget_effects()
    ours = jaxcb.io(look, result=None)
    _, recording = observed(lambda: jax.jit(ours)(one()))
    assert [site.flavor for site in recording.bound] == ["io"]


def test_callback_on_another_thread_is_recorded():
    def run():
        thread = threading.Thread(target=lambda: jax.jit(FLAVORS["jax io"])(one()))
        thread.start()
        thread.join()

    assert site_rows(run) == [("jax io", "double", "kept", 1)]


def test_explain_inside_the_block_includes_callbacks_of_jax():
    with jaxcb.observe_jax():
        returned_value = jaxcb.explain(jax.jit(FLAVORS["jax pure"]))(one())
    ((outcome,)) = returned_value.outcomes
    assert (outcome.site.flavor, str(outcome.status)) == ("jax pure", "kept")


def test_recording_survives_json():
    _, recording = observed(lambda: jax.jit(FLAVORS["jax pure"])(one()))
    again = type(recording).from_json(recording.to_json())
    assert to_text(again, times=False) == to_text(recording, times=False)


def test_print_of_a_program_compiled_before_has_a_place_in_words(capsys):
    f = jax.jit(lambda x: jax.debug.print("x is {}", x))
    f(one())
    jax.effects_barrier()
    _, recording = observed(lambda: f(one()))
    (summary,) = summarize(recording)
    assert (summary.site.flavor, summary.site.function) == ("jax debug", "debug.print")
    assert (summary.status, summary.calls) == ("kept", 1)
    assert (summary.where, summary.site.line) == ("a program compiled earlier", 0)
    assert "its program was compiled before JAX's callbacks were observed" in summary.notes[0]
    assert capsys.readouterr().out == "x is 1.0\n" * 2
