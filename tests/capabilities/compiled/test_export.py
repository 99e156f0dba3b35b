"""An exported program cannot have machine code of this process."""

import jax
import numpy as np
import pytest
from jax import export

import jupyter_jaxcb as jaxcb

X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_export_is_refused_with_the_name_of_the_callback(flavor):
    def halved(x):
        return x / 2

    f = jax.jit(flavor(halved, result="x", compile="numba"))
    name = r"cannot export halved@test_export\.py:"
    with pytest.raises(NotImplementedError, match=name) as raised:
        export.export(f)(X)
    assert "compute it in JAX; else export inside `with jaxcb.disabled():`" in str(raised.value)
    np.testing.assert_array_equal(f(X), X / 2)
