"""If the internals of JAX have changed, `observe_jax` raises a clear error and patches nothing."""

import importlib

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import start_observing, stop_observing

from .test_restored import jax_internals


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
def test_error_names_what_is_missing_and_the_supported_versions(module, name, monkeypatch):
    before = jax_internals()
    with monkeypatch.context() as patch:
        patch.delattr(importlib.import_module(f"jax._src.{module}"), name)
        with pytest.raises(RuntimeError) as caught, jaxcb.observe_jax():
            pytest.fail("observe_jax did not raise")
    message = str(caught.value)
    assert message.startswith(f"cannot observe the callbacks of JAX {jax.__version__}: ")
    assert name in message
    assert "JAX 0.10.0 to 0.12.0" in message
    assert jax_internals() == before


def test_error_names_a_missing_lowering(monkeypatch):
    from jax._src.callback import pure_callback_p
    from jax._src.interpreters import mlir

    monkeypatch.delitem(mlir._lowerings, pure_callback_p)
    with pytest.raises(RuntimeError, match="no lowering of pure_callback_p"), jaxcb.observe_jax():
        pytest.fail("observe_jax did not raise")


def test_block_after_a_failed_one_works(monkeypatch):
    from jax._src import callback

    with monkeypatch.context() as patch:
        patch.delattr(callback, "io_callback_impl")
        with pytest.raises(RuntimeError), jaxcb.observe_jax():
            pytest.fail("observe_jax did not raise")
    with jaxcb.observe_jax() as r:
        jax.debug.callback(lambda: None)
    assert len(r.recording) == 1


def test_jax_is_not_observed_forever_after_a_failed_start(monkeypatch):
    """Like a notebook session, the user of `start_observing` outlives any single block."""
    from jax._src import callback

    user = object()
    with monkeypatch.context() as patch:
        patch.delattr(callback, "io_callback_impl")
        with pytest.raises(RuntimeError):
            start_observing(user)
    before = jax_internals()
    try:
        with jaxcb.observe_jax():
            jax.debug.callback(lambda: None)
        assert jax_internals() == before
    finally:
        stop_observing(user)
