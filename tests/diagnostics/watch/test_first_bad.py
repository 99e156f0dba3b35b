"""The first bad value, where a program must not end at it."""

import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

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


def test_module_of_a_function_is_no_operand():
    with jaxcb.watching(first="nan") as seen:
        jax.jit(lambda x: jax.nn.softmax(x - jnp.inf))(jnp.ones(3))
    assert "jax.nn.softmax(x - jnp.inf)" in seen.first_bad.expression
    assert "jax.nn" not in [name for name, _ in seen.first_bad.inputs]


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
def test_callback_with_differences_is_named_under_a_gradient(jit):
    sin = jaxcb.pure(lambda x: np.where(x > 2, np.nan, np.sin(x)), result="x", derivative="finite")

    def loss(x):
        y = sin(x)
        miss = y - 1
        return jnp.sum(miss**2)

    with jaxcb.watching(first="nan") as seen:
        jax.block_until_ready(jit(jax.vmap(jax.grad(loss)))(jnp.array([[1.0], [3.0]])))
    bad = seen.first_bad
    assert (bad.expression, bad.element, bad.inputs) == ("sin(x)", (1,), (("x", "= 3"),))


@pytest.mark.parametrize("ordered", [True, False])
def test_stop_waits_for_the_value_that_made_the_others_bad(ordered):
    """A host call parts the program into blocks, which XLA looks at in any order."""
    xs = np.ones((6, 4), np.float32)
    xs[3, 2] = 0

    def loss(w, x):
        ratio = w / x - 0 / x
        return jnp.mean(ratio**2)

    def step(w, x):
        value, slope = jax.value_and_grad(loss)(w, x)
        io_callback(lambda value: None, None, value, ordered=ordered)
        w = w - 0.1 * slope
        return w, value

    with pytest.raises(FloatingPointError, match="`0 / x` gave NaN in step 3, forward"):
        with jaxcb.watching(first="nan", stop=True):
            jax.block_until_ready(jax.lax.scan(step, jnp.ones(4), xs))
