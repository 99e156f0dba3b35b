"""`check` works with every dtype that this version of JAX has, including those of ml_dtypes."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

NAMES = [name for name, kind in vars(ml_dtypes).items() if isinstance(kind, type)]
NAMES = [name for name in NAMES if name not in ("finfo", "iinfo")]
NUMPYS = "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 complex64".split()


def is_in_jax(dtype):
    """Return whether JAX can compute with `dtype`."""
    try:
        x = jax.numpy.asarray(np.ones(3, dtype))
        return np.asarray(jax.jit(lambda x: x[::-1])(x)).dtype == dtype
    except Exception:  # its class depends on the version of JAX
        return False


DTYPES = [np.dtype(getattr(ml_dtypes, name)) for name in NAMES]
DTYPES = [dtype for dtype in DTYPES if is_in_jax(dtype)] + [np.dtype(name) for name in NUMPYS]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def register(function, **options):
    return jaxcb.pure(function, result="x", **options)


@every_dtype
@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_identity_has_no_findings(dtype, method):
    for x in (np.array([0, 1, 1], dtype), np.ones((), dtype), np.ones((2, 0), dtype)):
        found = jaxcb.check(register(lambda x: x, vmap_method=method), x)
        assert found.ok, found.findings


def test_identity_has_no_findings_for_a_signaling_nan():
    x = np.array([0x7F81, 0x3F80], np.uint16).view(ml_dtypes.bfloat16)
    found = jaxcb.check(register(lambda x: x, vmap_method="expand_dims"), x)
    assert found.ok, found.findings


@every_dtype
def test_other_results_of_later_calls_and_of_batches_are_found(dtype):
    number = itertools.count()
    changing = register(lambda x: x if next(number) % 2 else np.roll(x, 1))
    whole = register(lambda x: np.ascontiguousarray(x[::-1]), vmap_method="expand_dims")
    for callback, kind in ((changing, "same inputs twice"), (whole, "vmap contract")):
        found = jaxcb.check(callback, np.array([1, 0, 0], dtype))
        assert {finding.kind for finding in found.findings} - {"source"} == {kind}


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int64"])
def test_batch_elements_differ_even_for_the_largest_integer(name):
    """If all batch elements were equal, a function that mixes them up would pass."""
    kind = getattr(ml_dtypes, name, None) or getattr(np, name)
    x = np.full(2, int(ml_dtypes.iinfo(kind).max), kind)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        found = jaxcb.check(register(lambda x: x[::-1].copy(), vmap_method="expand_dims"), x)
    assert [finding.kind for finding in found.findings] == ["vmap contract"]
