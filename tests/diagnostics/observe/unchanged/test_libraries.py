"""Observing callbacks that libraries make gives the same results and the right host calls."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax_tqdm import PBar, loop_tqdm, scan_tqdm

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import observed
from tests.interface import summarize


def calls(recording):
    return {s.site.function: s.calls for s in summarize(recording)}


def statuses(recording):
    return {s.site.function: str(s.status) for s in summarize(recording)}


def checked(x):
    x = 2 * x
    return eqx.error_if(x, x < 0, "x is negative")


def test_error_if_that_passes_makes_no_call():
    result, recording = observed(lambda: eqx.filter_jit(checked)(jnp.float32(1)))
    assert float(result) == 2
    assert calls(recording) == {"raises": 0, "tpu_msg": 0}
    assert statuses(recording)["raises"] == "not_reached"


def test_error_if_is_at_the_line_of_the_user_with_the_library_among_its_callers():
    _, recording = observed(lambda: eqx.filter_jit(checked)(jnp.float32(1)))
    site = summarize(recording)[0].site
    assert site.source == 'return eqx.error_if(x, x < 0, "x is negative")'
    assert any("equinox" in frame.file for frame in site.callers)


def test_error_if_that_fails_makes_one_call_and_raises_the_same_error():
    def raised():
        with pytest.raises(RuntimeError) as caught:
            eqx.filter_jit(lambda x: checked(x))(jnp.float32(-1))
        lines = str(caught.value).splitlines()  # including the call stack
        return caught.type, [line for line in lines if "x is negative" in line]

    plain = raised()
    jax.clear_caches()  # so that it is traced and compiled again
    with jaxcb.observe_jax() as r:
        assert raised() == plain
    assert any("EquinoxRuntimeError: x is negative" in line for line in plain[1])
    assert calls(r.recording) == {"raises": 1, "tpu_msg": 0}
    (call,) = r.recording
    assert call.error.startswith("_EquinoxRuntimeError: x is negative")


def test_filter_pure_callback_is_recorded_with_its_batch():
    def host(x, name):
        assert name == "twice"
        return 2 * x

    def f(x):
        return eqx.filter_pure_callback(
            host, x, "twice", result_shape_dtypes=x, vmap_method="expand_dims"
        )

    xs = jnp.arange(3.0)
    result, recording = observed(lambda: eqx.filter_jit(jax.vmap(f))(xs))
    assert (result == 2 * xs).all()
    (fact,) = recording.lowered
    assert len(recording) == 1
    assert [(level.size, level.method) for level in fact.levels] == [(3, "expand_dims")]


# A bar of n steps is made once, closed once, and updated at some multiples of the print rate.
@pytest.mark.parametrize(("n", "rate", "moves"), [(100, 10, 9), (95, 10, 9), (7, 1, 6), (5, 5, 0)])
def test_progress_bar_of_a_scan(n, rate, moves, capsys):
    def step(carry, i):
        return carry + i, 2 * i

    def run():
        wrapped = scan_tqdm(n, print_rate=rate)(step)
        return jax.jit(lambda: jax.lax.scan(wrapped, 0, jnp.arange(n)))()

    (total, doubled), recording = observed(run)
    assert int(total) == n * (n - 1) // 2
    assert (doubled == 2 * jnp.arange(n)).all()
    assert calls(recording) == {"_define_tqdm": 1, "_update_tqdm": moves, "_close_tqdm": 1}
    assert len(recording) == moves + 2
    assert recording.lowered[recording.calls["lowered"][0]].site.function == "_define_tqdm"
    assert recording.lowered[recording.calls["lowered"][-1]].site.function == "_close_tqdm"


def test_progress_bars_of_several_loops(capsys):
    n, elements = 20, 3

    @loop_tqdm(n, print_rate=5)
    def step(i, carry):
        return carry + i

    def run():
        def one(element):
            return jax.lax.fori_loop(0, n, step, PBar(id=element, carry=0)).carry

        return [int(one(element)) for element in range(elements)]

    result, recording = observed(run)
    assert result == [n * (n - 1) // 2] * elements
    assert calls(recording) == {
        "_define_tqdm": elements,
        "_update_tqdm": 3 * elements,
        "_close_tqdm": elements,
    }
