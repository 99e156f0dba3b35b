"""In a worker of an executor a host function learns which call it is in, as without executor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

THREE = jax.ShapeDtypeStruct((3,), np.float32)


def asking(executor, **options):
    """Return a callback whose result is the number of the call and its index in two vmaps."""

    def ask(x):
        info = jaxcb.call_info()
        return np.array([info.call, *info.index], np.float32)

    return jaxcb.pure(ask, result=THREE, executor=executor, **options)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("options", [{}, {"timeout": 60.0}, {"chunksize": 2}], ids=str)
@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_number_and_index_are_those_of_a_call_without_executor(executor, options, recorded):
    ask = asking(executor, **options)
    program = jax.jit(jax.vmap(jax.vmap(ask)))
    with jaxcb.record() if recorded else jaxcb.strict_errors():
        found = np.asarray(program(jnp.zeros((2, 3))))
    expected = np.asarray(jax.jit(jax.vmap(jax.vmap(asking(None))))(jnp.zeros((2, 3))))
    assert found.tolist() == expected.tolist()
    assert [tuple(index) for index in found.reshape(6, 3)[:, 1:]] == list(np.ndindex(2, 3))


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_masked_calls_have_the_index_in_the_whole_batch(executor):
    def index(x):
        return np.float32(jaxcb.call_info().index[0])

    index = jaxcb.pure(index, result="x", executor=executor, chunksize=2)
    program = jax.jit(jax.vmap(lambda x: index.where(x % 2 == 1, x, otherwise=-1)))
    assert program(jnp.arange(7.0)).tolist() == [-1, 1, -1, 3, -1, 5, -1]


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_gathered_call_has_the_indices_in_the_whole_batch(executor):
    def elements(x):
        return np.array([index for (index,) in jaxcb.call_info().elements], np.float32)

    index = jaxcb.pure(elements, result="x", executor=executor, vmap_method="expand_dims")
    program = jax.jit(jax.vmap(lambda x: index.where(x % 2 == 1, x, otherwise=-1)))
    assert program(jnp.arange(6.0)).tolist() == [-1, 1, -1, 3, -1, 5]
