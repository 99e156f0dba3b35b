"""In a worker of an executor a host function learns which call it is in, as without executor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

BOTH = pytest.mark.parametrize("executor", ["threads:2", "processes:2"])


@BOTH
@pytest.mark.parametrize("options", [{"timeout": 60.0}, {"chunksize": 2}], ids=str)
def test_number_and_index_are_those_of_a_call_without_executor(executor, options):
    def ask(x):
        info = jaxcb.call_info()
        return np.array([info.call, *info.index], np.float32)

    three = jax.ShapeDtypeStruct((3,), np.float32)

    def found(**options):
        program = jax.vmap(jax.vmap(jaxcb.pure(ask, result=three, **options)))
        return np.asarray(jax.jit(program)(jnp.zeros((2, 3))))

    assert found(executor=executor, **options).tolist() == found().tolist()
    assert found()[..., 1:].reshape(6, 2).tolist() == [list(index) for index in np.ndindex(2, 3)]


@BOTH
@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_masked_calls_have_the_indices_in_the_whole_batch(executor, method):
    def indices(x):
        found = [index for (index,) in jaxcb.call_info().elements]
        return np.array(found, np.float32).reshape(x.shape)

    f = jaxcb.pure(indices, result="x", executor=executor, vmap_method=method)
    program = jax.jit(jax.vmap(lambda x: f.where(x % 2 == 1, x, otherwise=-1)))
    assert program(jnp.arange(7.0)).tolist() == [-1, 1, -1, 3, -1, 5, -1]
