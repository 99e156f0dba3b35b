"""In a JAX whose insides have moved: one clear error before anything is touched."""

import importlib

import jax
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import start_observing, stop_observing

from .test_put_back import insides


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("callback", "pure_callback_p"),
        ("callback", "io_callback_impl"),
        ("debugging", "debug_print_p"),
        ("debugging", "_make_flat_callback"),
        ("dispatch", "xla_primitive_callable"),
        ("shard_map", "eager_rules"),
        ("buffer_callback", "buffer_callback_p"),
        ("interpreters.batching", "fancy_primitive_batchers"),
        ("interpreters.mlir", "_platform_specific_lowerings"),
    ],
)
def test_what_has_moved_is_named_with_versions_that_work(module, name, monkeypatch):
    before = insides()
    with monkeypatch.context() as patch:
        patch.delattr(importlib.import_module(f"jax._src.{module}"), name)
        with pytest.raises(RuntimeError) as caught, jaxcb.observe_jax():
            pytest.fail("it began")
    message = str(caught.value)
    assert message.startswith(f"cannot observe the callbacks of JAX {jax.__version__}: ")
    assert name in message
    assert "JAX 0.8.0 to 0.12.0" in message
    assert insides() == before


def test_lowering_that_is_gone_is_named(monkeypatch):
    from jax._src.callback import pure_callback_p
    from jax._src.interpreters import mlir

    monkeypatch.delitem(mlir._lowerings, pure_callback_p)
    with pytest.raises(RuntimeError, match="no lowering of pure_callback_p"), jaxcb.observe_jax():
        pytest.fail("it began")


def test_block_after_one_that_could_not_begin_works(monkeypatch):
    from jax._src import callback

    with monkeypatch.context() as patch:
        patch.delattr(callback, "io_callback_impl")
        with pytest.raises(RuntimeError), jaxcb.observe_jax():
            pytest.fail("it began")
    with jaxcb.observe_jax() as r:
        jax.debug.callback(lambda: None)
    assert len(r.recording) == 1


def test_who_was_refused_does_not_have_jax_observed_for_ever(monkeypatch):
    """A notebook's session, which is there for longer than a block."""
    from jax._src import callback

    user = object()
    with monkeypatch.context() as patch:
        patch.delattr(callback, "io_callback_impl")
        with pytest.raises(RuntimeError):
            start_observing(user)
    before = insides()
    try:
        with jaxcb.observe_jax():
            jax.debug.callback(lambda: None)
        assert insides() == before
    finally:
        stop_observing(user)
