"""Ordered callbacks stay in order across programs and eager calls, and never deadlock."""

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb


@pytest.mark.parametrize("flavor", ["io", "debug"])
def test_eager_call_comes_after_a_program_that_is_still_running(flavor):
    """The program's operand is still being computed at dispatch, so it runs asynchronously."""
    seen = []

    def bind(host, x):
        if flavor == "io":
            jaxcb.io_callback(host, None, x, ordered=True)
        else:
            jaxcb.debug_callback(host, x, ordered=True)

    program = jax.jit(lambda x: bind(lambda _: seen.append("program"), x[0, 0]))
    work = jax.jit(lambda x: x @ x / x.shape[0])
    x = jnp.ones((400, 400))
    work(x).block_until_ready()
    program(x)
    jax.effects_barrier()
    seen.clear()
    for _ in range(10):
        program(work(work(work(x))))
        bind(lambda _: seen.append("eager"), 1.0)
    jax.effects_barrier()
    assert seen == ["program", "eager"] * 10


NESTED = """
import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
seen = []
def inner(x): seen.append(("inner", float(x)))
def outer(x):
    jaxcb.io_callback(inner, None, x + 1, ordered=True)
    seen.append(("outer", float(x)))
f = jax.jit(lambda x: jaxcb.io_callback(outer, None, x, ordered=True))
for x in range(3):
    f(float(x))
jax.effects_barrier()
assert seen == [
    (name, float(x + (name == "inner"))) for x in range(3) for name in ("inner", "outer")
]
"""


def test_ordered_call_inside_an_ordered_call_does_not_wait_for_itself(in_process):
    """Run in a separate process, because a deadlock could not be interrupted."""
    in_process(NESTED)


def test_failure_that_nothing_waits_for_fails_its_block_and_no_other():
    """The operand is still being computed, so the program fails after its dispatch returned."""

    def host(x):
        raise ValueError("no luck")

    f = jax.jit(lambda x: jaxcb.io_callback(host, None, x[0, 0], ordered=True))
    work = jax.jit(lambda x: x @ x / x.shape[0])
    x = jnp.ones((700, 700))
    work(x).block_until_ready()
    for _ in range(3):
        with pytest.raises(jax.errors.JaxRuntimeError) as caught, jaxcb.record() as recorded:
            f(work(work(work(x))))
        assert str(jaxcb.host_error(caught.value)) == "no luck"
        assert [call.error for call in recorded.recording] == ["ValueError: no luck"]
        jax.effects_barrier()
