"""The first bad value, where a program must not end at it."""

import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb

ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax import lax
mesh, spec = Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d")
x = jax.device_put(jnp.arange(8.0) - 4, NamedSharding(mesh, spec))
for f in (
    jax.jit(lambda x: jnp.log(x).sum()),
    jax.shard_map(
        lambda x: lax.psum(jnp.log(x), "d"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec()
    ),
):
    try:
        with jaxcb.watching(stop=True):
            jax.block_until_ready(jax.jit(f)(x))
    except FloatingPointError as error:
        print(error)
"""


def test_stop_lets_a_program_on_several_devices_go_on_to_its_end():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    code = textwrap.dedent(ON_TWO_DEVICES)
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | flags, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gave NaN") == 2


@pytest.mark.parametrize("first", ["inf", "x > 10"])
def test_value_is_reported_where_it_is_made_though_none_like_it_comes_of_it(first):
    def f(x):
        y = 1 / x
        z = y - 2 * y  # of two infinite values, NaN
        return z

    with jaxcb.watching(first=first) as seen:
        jax.grad(f)(0.0)
    assert (seen.first_bad.expression, seen.first_bad.direction) == ("1 / x", "forward")


OF_A_LIBRARY = """
def fail(y):
    raise RuntimeError("no luck")

@jax.jit
def solved(y):
    x = jnp.linalg.solve(jnp.eye(3) + y, jnp.ones(3))
    fails = jnp.isnan(x).any()
    return jax.lax.cond(fails, lambda x: jax.pure_callback(fail, x, x), lambda x: x, x)
"""


def test_bad_value_is_found_though_a_library_raises_because_of_it():
    """Values of a block are looked at together, but not later than the next host call."""
    library = {"jax": jax, "jnp": jnp}
    exec(compile(OF_A_LIBRARY, jax.__file__, "exec"), library)

    def f(x):
        y = jnp.log(x)
        z = library["solved"](y)
        return z + 1

    with jaxcb.watching(first="nan") as seen, pytest.raises(Exception, match="no luck"):
        jax.block_until_ready(jax.jit(f)(-1.0))
    assert seen.first_bad.expression == "jnp.log(x)"


@pytest.mark.parametrize("first", ["", "NaN", "x"])
def test_condition_that_means_nothing_is_refused(first):
    with pytest.raises(ValueError, match="is not an expression of x"):
        jaxcb.watching(first=first)
