"""The options: names and defaults of jax.config, read from the same environment variables."""

import threading

import jax
import pytest

from jupyter_jaxcb import host_callback as hcb


@pytest.fixture
def flag():
    """Set flags with ``flag(name, value)``; all flags are restored after the test."""
    before = dict(vars(hcb.flags))
    yield hcb.flags.update
    vars(hcb.flags).update(before)


IMPORT = "import jax\nfrom jupyter_jaxcb import host_callback as hcb\n"


def boom(arg, *transforms):
    raise ValueError("no luck")


def test_defaults():
    assert vars(hcb.flags) == {
        "jax_host_callback_inline": False,
        "jax_host_callback_max_queue_byte_size": 256_000_000,
        "jax_host_callback_outfeed": False,
        "jax_host_callback_legacy": True,
        "raise_at_once": False,
    }


@pytest.mark.long
def test_environment_is_read(in_process):
    done = in_process(
        IMPORT + "print(vars(hcb.flags))",
        JAX_HOST_CALLBACK_INLINE="1",
        JAX_HOST_CALLBACK_MAX_QUEUE_BYTE_SIZE="16e6",
        JAX_HOST_CALLBACK_OUTFEED="true",
        JAX_HOST_CALLBACK_LEGACY="0",
        JAX_HOST_CALLBACK_AD_TRANSFORMS="0",
    )
    assert done.stdout.split("\n")[0] == str(
        {
            "jax_host_callback_inline": True,
            "jax_host_callback_max_queue_byte_size": 16_000_000,
            "jax_host_callback_outfeed": True,
            "jax_host_callback_legacy": False,
            "raise_at_once": False,
        }
    ), done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("JAX_HOST_CALLBACK_INLINE", "perhaps", "is not a boolean"),
        ("JAX_HOST_CALLBACK_MAX_QUEUE_BYTE_SIZE", "big", "is not a number of bytes"),
        ("JAX_HOST_CALLBACK_AD_TRANSFORMS", "1", "primal values only"),
    ],
)
def test_invalid_environment_variable_is_refused(in_process, variable, value, message):
    done = in_process(IMPORT, status=1, **{variable: value})
    assert message in done.stderr


def test_update_refuses_unknown_flags_and_wrong_types(flag):
    with pytest.raises(AttributeError, match="jax_host_callback_inline"):
        flag("jax_host_callback_online", True)
    with pytest.raises(AttributeError, match="primal values only"):
        flag("jax_host_callback_ad_transforms", True)
    with pytest.raises(TypeError, match="must be bool, but got 1"):
        flag("jax_host_callback_inline", 1)


def test_flags_kept_for_compatibility_have_no_effect(flag, seen):
    flag("jax_host_callback_max_queue_byte_size", 16)
    flag("jax_host_callback_outfeed", True)
    flag("jax_host_callback_legacy", False)
    assert seen.of(jax.jit(jax.vmap(lambda x: hcb.id_tap(seen, x))), jax.numpy.arange(2)).sum() == 1
    assert seen.transforms == [(("batch", {"batch_dims": (0,)}),)]


def test_inline_raises_the_original_exception_immediately(flag, seen):
    flag("jax_host_callback_inline", True)
    with pytest.raises(ValueError, match="no luck"):
        hcb.id_tap(boom, 1.0)
    with pytest.raises(ValueError, match="no luck"):
        hcb.call(boom, 1.0, result_shape=1.0)
    assert hcb.barrier_wait() is None
    threads = []
    hcb.id_tap(lambda a, t: threads.append((threading.get_ident(), type(a).__name__)), 1.0)
    assert threads == [(threading.get_ident(), "ndarray")]


def test_inline_changes_nothing_under_jit(flag):
    flag("jax_host_callback_inline", True)
    assert jax.jit(lambda x: hcb.id_tap(boom, x) + 1)(1.0) == 2.0
    with pytest.raises(hcb.CallbackException):
        hcb.barrier_wait()
    with pytest.raises(RuntimeError, match="no luck"):
        jax.block_until_ready(jax.jit(lambda x: hcb.call(boom, x, result_shape=x))(1.0))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_flag_raise_at_once_raises_errors_of_taps_immediately(flag, seen, around):
    flag("raise_at_once", True)
    f = around(lambda x: hcb.id_tap(seen, hcb.id_tap(boom, x)))
    with pytest.raises(RuntimeError, match="no luck"):
        jax.block_until_ready(f(1.0))
    assert seen.calls == []
    assert hcb.barrier_wait() is None
