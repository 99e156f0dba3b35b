import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def silent_callbacks():
    """A jitted function with one callback of every flavor, none of which is needed; their calls."""
    called = []

    @jax.jit
    def double(x):
        jaxcb.debug_callback(lambda x: called.append("debug"), x)
        jaxcb.debug_print("x = {}", x)
        jaxcb.io_callback(lambda x: called.append("io"), None, x)
        jaxcb.pure(lambda x: called.append("pure"), result=lambda x: x)(x)
        return 2 * x

    return double, called


def test_disabled_leaves_callbacks_out_and_the_rest_as_it_is(silent_callbacks, capsys):
    double, called = silent_callbacks
    with jaxcb.disabled():
        assert double(X).tolist() == [0, 2, 4]
        assert jax.vmap(double)(X).tolist() == [0, 2, 4]
        assert jax.grad(lambda x: double(x).sum())(X).tolist() == [2, 2, 2]
    jax.effects_barrier()
    assert called == []
    assert capsys.readouterr().out == ""


def test_callbacks_are_back_after_the_block_and_gone_in_the_next_one(silent_callbacks):
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
def test_result_that_is_needed_is_not_made_up(flavor, transform):
    f = getattr(jaxcb, flavor)(np.sin, result=lambda x: x)
    with (
        jaxcb.disabled(),
        pytest.raises(NotImplementedError, match="cannot leave out sin: its res"),
    ):
        transform(f)(X)


def test_disabled_holds_for_its_own_thread_alone():
    results = []
    f = jaxcb.pure(np.sin, result=lambda x: x)
    with jaxcb.disabled():
        thread = threading.Thread(target=lambda: results.append(f(X)))
        thread.start()
        thread.join()
    assert np.allclose(results[0], np.sin(X))


@pytest.mark.parametrize("platforms", [None, ["cpu", "cuda"]])
def test_export_refuses_and_names_the_way_out_which_works(silent_callbacks, platforms):
    double, _ = silent_callbacks
    with pytest.raises(NotImplementedError, match=r"cannot export <lambda>@.*jaxcb\.disabled\(\)"):
        jax.export.export(double, platforms=platforms)(X)
    with jaxcb.disabled():
        exported = jax.export.export(double, platforms=platforms)(X)
    assert exported.call(X).tolist() == [0, 2, 4]
