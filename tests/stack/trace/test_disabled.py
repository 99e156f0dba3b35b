import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def silent_callbacks():
    """Return a jitted function with callbacks whose results are unused, and the list of calls."""
    called = []

    @jax.jit
    def double(x):
        jaxcb.debug_callback(lambda x: called.append("debug"), x)
        jaxcb.debug_print("x = {}", x)
        jaxcb.io_callback(lambda x: called.append("io"), None, x)
        jaxcb.pure(lambda x: called.append("pure"), result=lambda x: x)(x)
        return 2 * x

    return double, called


def test_disabled_leaves_out_callbacks_and_nothing_else(silent_callbacks, capsys):
    double, called = silent_callbacks
    with jaxcb.disabled():
        assert double(X).tolist() == [0, 2, 4]
        assert jax.vmap(double)(X).tolist() == [0, 2, 4]
        assert jax.grad(lambda x: double(x).sum())(X).tolist() == [2, 2, 2]
    jax.effects_barrier()
    assert called == []
    assert capsys.readouterr().out == ""


def test_callbacks_are_left_out_inside_the_block_only(silent_callbacks):
    double, called = silent_callbacks
    for runs in (1, 2):
        with jaxcb.disabled():
            double(X)
        double(X).block_until_ready()
        jax.effects_barrier()
        assert sorted(called) == ["debug"] * runs + ["io"] * runs


@pytest.mark.parametrize("flavor", ["pure", "io"])
@pytest.mark.parametrize(
    "transform", [jax.jit, jax.vmap, lambda f: f], ids=["jit", "vmap", "eager"]
)
def test_callback_whose_result_is_used_cannot_be_left_out(flavor, transform):
    f = getattr(jaxcb, flavor)(np.sin, result=lambda x: x)
    with (
        jaxcb.disabled(),
        pytest.raises(NotImplementedError, match="cannot leave out sin: its res"),
    ):
        transform(f)(X)


@pytest.mark.parametrize("platforms", [None, ["cpu", "cuda"]])
def test_export_error_names_a_fix_that_works(silent_callbacks, platforms):
    double, _ = silent_callbacks
    with pytest.raises(NotImplementedError, match=r"cannot export <lambda>@.*jaxcb\.disabled\(\)"):
        jax.export.export(double, platforms=platforms)(X)
    with jaxcb.disabled():
        exported = jax.export.export(double, platforms=platforms)(X)
    assert exported.call(X).tolist() == [0, 2, 4]
