"""Compiled callbacks on the accelerator: machine code for CPUs is refused there in words."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


@jaxcb.pure(result="x", compile="numba")
def double(x):
    return 2 * x


def test_compiled_callback_computes_on_a_cpu_and_is_refused_elsewhere():
    if jax.default_backend() == "cpu":
        assert jax.jit(double)(np.float32(1.5)) == 3
    else:
        with pytest.raises(NotImplementedError, match="numba compiles for CPUs"):
            jax.jit(double)(np.float32(1.5))


def test_compiled_callback_computes_on_the_cpu_beside_an_accelerator():
    with jax.default_device(jax.devices("cpu")[0]):
        assert jax.jit(double)(np.float32(1.5)) == 3
