"""A vmap whose batch elements JAX loops over is reported as one of ours: levels and elements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, observed
from tests.interface import summarize, to_html, to_text

arounds = pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])


def binds(seen):
    """Return a callback of each flavor that appends its argument to `seen`."""

    def host(x):
        seen.append(float(x))
        return np.asarray(x)

    return {
        "jax pure": lambda x: jax.pure_callback(host, STRUCT, x, vmap_method="sequential"),
        "jax io": lambda x: io_callback(host, STRUCT, x),
        "jax debug": lambda x: jax.debug.callback(host, x),
    }


flavors = pytest.mark.parametrize("flavor", binds([]))


def elements(recording):
    return [call.element for call in recording]


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
@arounds
@flavors
def test_each_call_has_the_number_of_its_batch_element(flavor, around):
    seen = []
    f = around(jax.vmap(binds(seen)[flavor]))
    _, recording = observed(lambda: [f(jnp.arange(3.0)) for _ in range(2)])
    assert sorted(elements(recording)) == [0, 0, 1, 1, 2, 2]
    assert elements(recording) == seen
    (summary,) = summarize(recording)
    (shapes,) = summary.shapes
    assert [(level.size, level.method) for level in shapes.levels] == [(3, "sequential")]
    assert [aval.shape for aval in shapes.operands] == [()]
    assert (str(summary.status), summary.expected or 6, summary.around) == ("kept", 6, ())
    assert "vmap 3, sequential" in to_text(recording)
    assert "<strong>6 calls, 3 each time, one for each element</strong>" in to_html(recording)


@flavors
def test_elements_of_nested_vmaps_are_row_major(flavor):
    seen = []
    f = jax.jit(jax.vmap(jax.vmap(binds(seen)[flavor])))
    _, recording = observed(lambda: f(jnp.arange(6.0).reshape(2, 3)))
    assert (elements(recording), sorted(seen)) == (seen, list(range(6)))
    (summary,) = summarize(recording)
    (shapes,) = summary.shapes
    assert [level.size for level in shapes.levels] == [3, 2]
    assert (summary.calls, summary.expected, summary.around) == (6, 6, ())


def test_vmap_inside_a_scan_and_a_scan_inside_a_vmap_have_the_scan_alone():
    one = binds([])["jax pure"]

    def inside(xs):
        return jax.lax.scan(lambda c, _: (jax.vmap(one)(c), None), xs, None, length=5)[0]

    def outside(x):
        return jax.lax.scan(lambda c, _: (one(c), None), x, None, length=5)[0]

    for f in (inside, jax.vmap(outside)):
        _, recording = observed(lambda f=f: jax.jit(f)(jnp.arange(3.0)))
        (summary,) = summarize(recording)
        assert (summary.calls, summary.expected) == (15, 15)
        assert summary.around[-1:] == ("scan of 5",)
        assert elements(recording) == [0, 1, 2] * 5


def test_argument_that_no_vmap_batches_is_unbatched_in_the_diagram():
    def f(x, y):
        return jax.pure_callback(lambda x, y: x, STRUCT, x, y, vmap_method="sequential")

    _, recording = observed(lambda: jax.jit(jax.vmap(f, (0, None)))(jnp.arange(3.0), 1.0))
    assert "vmap 3 (batched, unbatched), sequential" in to_text(recording)


def test_elements_begin_anew_after_a_call_has_raised():
    def host(x):
        if x == 1 and not healed:
            raise ValueError("no luck")
        return np.asarray(x)

    healed = []
    f = jax.jit(jax.vmap(lambda x: jax.pure_callback(host, STRUCT, x, vmap_method="sequential")))
    with jaxcb.observe_jax() as r:
        with pytest.raises(jax.errors.JaxRuntimeError):
            f(jnp.arange(3.0)).block_until_ready()
        healed.append(True)
        f(jnp.arange(3.0)).block_until_ready()
    assert elements(r.recording) == [0, 1, 0, 1, 2]


def test_unrolled_loop_has_no_element_numbers_because_xla_chooses_its_order():
    def f(x):
        return jax.pure_callback(lambda x: x, STRUCT, x, vmap_method="sequential_unrolled")

    _, recording = observed(lambda: jax.jit(jax.vmap(f))(jnp.arange(4.0)))
    assert elements(recording) == [-1] * 4
    (summary,) = summarize(recording)
    assert [level.size for level in summary.shapes[0].levels] == [4]
    assert (summary.calls, summary.around) == (4, ())


def test_empty_batch_is_named_as_the_reason():
    one = binds([])["jax pure"]
    _, recording = observed(lambda: jax.jit(jax.vmap(one))(jnp.zeros(0)))
    (summary,) = summarize(recording)
    assert "vmap maps it over an axis of size 0" in summary.reason


@pytest.mark.parametrize("flavor", ["jax pure", "jax io"])
def test_fori_loop_is_called_by_its_name(flavor):
    one = binds([])[flavor]

    def f(x, n):
        return jax.lax.fori_loop(0, n, lambda i, x: one(x), x)

    for run, words in (
        (lambda: jax.jit(f, static_argnums=1)(1.0, 4), "fori_loop of 4"),
        (lambda: jax.jit(f)(1.0, 4), "fori_loop"),
    ):
        _, recording = observed(run)
        (summary,) = summarize(recording)
        assert (summary.calls, summary.around) == (4, (words,))
