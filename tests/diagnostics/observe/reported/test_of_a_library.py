"""What is said of callbacks that a library makes with functions of its own."""

import functools
import itertools

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, observed
from tests.interface import headline, summarize, to_html, to_mimebundle, to_text

pytestmark = pytest.mark.kept
SIN = jaxcb.pure(np.sin, result="x")
NOTHING = "in equinox; nothing to change"


def texts(recording):
    """Return every text that readers of a recording see."""
    data, _ = to_mimebundle(recording)
    return to_text(recording), to_html(recording), str(data)


def checked(x):
    x = eqx.error_if(x, x < 0, "negative")
    x = eqx.error_if(x, x > 100, "large")
    return jax.lax.fori_loop(0, 3, lambda _, x: eqx.error_if(x + 1, x > 1000, "huge"), x)


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
def test_checks_that_passed_are_one_grey_line(jit):
    sin = jaxcb.pure(np.sin, result="x")
    _, recording = observed(lambda: jit(lambda x: sin(checked(x)))(jnp.float32(1)))
    _, checks, own = to_text(recording).splitlines()
    assert "3 lines in equinox; nothing to change" in checks
    assert checks.split("  ")[-1] == "0 calls"
    assert "1 call " in own
    for text in texts(recording):
        assert "raises" not in text and "tpu_msg" not in text
        assert "check the condition" not in text
    assert [site.calls for site in summarize(recording)] == [0] * 6 + [1]
    data, _ = to_mimebundle(recording)
    (facts,) = (value for value in data.values() if isinstance(value, dict))
    assert ["quiet", "equinox 0 calls (not reached)"] in facts["headline"]


@pytest.mark.parametrize("program", [lambda x: SIN(checked(x.sum())), lambda x: checked(x.sum())])
def test_program_of_checks_that_passed_is_still_said_to_be_compiled_several_times(program):
    step = jax.jit(program)
    _, recording = observed(lambda: [step(jnp.ones(size)) for size in (1, 2, 3)])
    assert "was compiled 3 times, for (float32[1]), (float32[2])" in to_text(recording)
    assert any("compiled 3 times" in text for _, text in headline(summarize(recording)))


def test_check_that_failed_is_shown_with_the_others_of_its_program():
    with jaxcb.observe_jax() as r, pytest.raises(Exception, match="negative"):
        jax.jit(checked)(jnp.float32(-1)).block_until_ready()
    text = to_text(r.recording)
    assert text.startswith("✕ raises, ")
    assert "raised _EquinoxRuntimeError: negative" in text
    assert NOTHING not in text


def test_check_whose_result_is_ignored_is_a_warning_that_says_to_use_it():
    def ignored(x):
        eqx.error_if(x, x < 0, "negative")
        return 2 * x

    _, recording = observed(lambda: jax.jit(ignored)(jnp.float32(1)))
    for site in summarize(recording):
        assert (site.consequence, site.advice.startswith("return or use the result")) == (
            "unused",
            True,
        )


def metered(limit):
    """Count up to `limit` with a progress meter, whose callback equinox makes."""
    meter = eqxi.TextProgressMeter(0.01)

    def body(carry):
        count, state = carry
        return count + 1, meter.step(state, count / 5)

    start = (jnp.float32(0), meter.init())
    return jax.lax.while_loop(lambda carry: carry[0] < limit, body, start)[0]


def test_calls_in_vain_of_a_library_are_said_without_advice_to_register_its_function(capfd):
    _, recording = observed(lambda: jax.jit(jax.vmap(metered))(jnp.array([1.0, 3.0])))
    text = to_text(recording)
    assert f"called again until the last one finishes ({NOTHING})" in text
    for text in texts(recording):
        assert "register the function" not in text
        assert "expand_dims' makes" not in text


def body(x):
    return jax.lax.while_loop(lambda x: x < 3, functools.partial(callback_of_equinox), x)


def callback_of_equinox(x, add=lambda x: np.float32(x + 1)):
    return eqx.filter_pure_callback(add, x, result_shape_dtypes=STRUCT, vmap_method="sequential")


def test_function_of_the_user_that_a_library_calls_keeps_its_advice():
    _, recording = observed(lambda: jax.jit(jax.vmap(body))(jnp.array([0.0, 1.0])))
    (site,) = summarize(recording)
    assert any("register the function" in note for note in site.notes)
    assert NOTHING not in to_text(recording)


BINDS = {
    "pure": lambda x: jax.pure_callback(np.sin, STRUCT, x, vmap_method="sequential"),
    "debug": lambda x: jax.debug.callback(lambda x: None, x),
    "print": lambda x: jax.debug.print("{}", x),
    "ours": jaxcb.debug(lambda x: None),
}


@pytest.mark.parametrize("flavor", ["debug", "print", "ours"])
def test_logger_in_a_checkpoint_is_advised_to_be_called_once(flavor):
    @jax.checkpoint
    def logs(x):
        BINDS[flavor](x)
        return jnp.sin(x) * x

    _, recording = observed(lambda: jax.jit(jax.grad(logs))(jnp.float32(1)))
    (site,) = summarize(recording)
    assert site.calls == 2
    (note,) = (note for note in site.notes if "jax.checkpoint" in note)
    assert note.endswith(
        "register it with rematerialize=False, or make it outside of the checkpoint"
    )


def test_pure_call_in_a_checkpoint_is_advised_to_keep_its_result():
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    double.defjvp(lambda x, t: (double(*x), 2 * t[0]))

    @jax.checkpoint
    def squared(x):
        return jnp.sin(x * double(x))

    with jaxcb.record() as r:
        jax.jit(jax.value_and_grad(squared))(jnp.float32(1))[1].block_until_ready()
    notes = list(itertools.chain(*(site.notes for site in summarize(r.recording))))
    assert any("register it with rematerialize=False" in note for note in notes)


def test_headline_of_several_sites_names_the_hoisted_and_the_deduplicated_ones():
    sin = jaxcb.pure(np.sin, result="x")

    def program(x):
        y = sin(x)
        y = jax.lax.fori_loop(0, 5, lambda _, total: total + sin(x), y)
        again = jax.jit(sin)
        return again(y) + again(y)

    with jaxcb.record() as r:
        jax.jit(program)(1.0).block_until_ready()
    sites = summarize(r.recording)
    where = {str(site.status): site.where for site in sites}
    words = f"({where['hoisted']} hoisted, {where['deduplicated']} deduplicated)"
    assert ("kept", f"3 calls instead of 8 {words}") in headline(sites)
    ahead = summarize(jaxcb.explain(program)(1.0))
    assert ("kept", f"3 calls per run instead of 8 {words}") in headline(ahead)


def test_headline_of_several_sites_names_the_one_with_fewer_calls():
    sin = jaxcb.pure(np.sin, result="x")
    again = jax.jit(lambda x: sin(x))

    def program(x):
        y = jax.lax.fori_loop(0, 5, lambda _, total: total + again(x) + again(x), x)
        return y + sin(y)

    few, _ = sites = summarize(jaxcb.explain(program)(1.0))
    assert few.status == "fewer"
    assert ("kept", f"2 calls per run instead of 11 ({few.where} fewer)") in headline(sites)


def test_headline_of_many_functions_names_or_counts_the_hoisted_ones():
    def named(name):
        def host(x):
            return np.asarray(x)

        host.__name__ = host.__qualname__ = name
        return jaxcb.pure(host, result="x")

    first = [named(f"f{n}") for n in range(6)]
    last, bad = named("last"), named("bad")

    def program(x):
        for each in first:
            x = each(x)
        return jax.lax.fori_loop(0, 5, lambda _, total: total + last(x), x)

    def with_problem(x):
        bad(x)
        return program(x)

    found = [text for _, text in headline(summarize(jaxcb.explain(program)(1.0)))]
    assert found[0] == "last 1 call per run instead of 5 (hoisted)"
    assert found[-1] == "3 more fine"
    found = [text for _, text in headline(summarize(jaxcb.explain(with_problem)(1.0)))]
    assert found == ["⚠ bad never called (unused)", "7 more fine (1 with fewer calls)"]


@pytest.mark.parametrize("derivative", [jax.grad, lambda f: jax.grad(eqx.filter_jit(f))])
def test_checks_of_an_eager_derivative_are_one_grey_line(derivative):
    _, recording = observed(lambda: derivative(lambda x: eqx.error_if(x, x < 0, "negative"))(1.0))
    _, checks = to_text(recording).splitlines()
    assert NOTHING in checks and "unknown" in checks
    assert "jax.jit" not in to_text(recording)


def test_check_that_lineax_makes_while_it_is_lowered_is_not_said_to_be_unused():
    matrix = jnp.array([[2.0, 1.0], [1.0, 3.0]])

    @jax.jit
    def solve(b):
        return lineax.linear_solve(lineax.MatrixLinearOperator(matrix), b).value

    result, recording = observed(lambda: solve(jnp.ones(2)))
    np.testing.assert_allclose(matrix @ result, 1, rtol=1e-5)
    assert "custom_call @xla_ffi_python_cpu_callback" in solve.lower(jnp.ones(2)).as_text()
    assert "unused" not in to_text(recording)
