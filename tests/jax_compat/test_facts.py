"""What docs/jax-facts.md says about versions of JAX: JAX's own callbacks, and ours beside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.upgraded import UPGRADED

IS_0_12 = jax.__version_info__ >= (0, 12)
STRUCT = jax.ShapeDtypeStruct((), np.float32)

FAILED_TOKEN = """
    import json, logging
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental import io_callback

    logging.disable(logging.CRITICAL)
    STRUCT = jax.ShapeDtypeStruct((), np.float32)

    def fail(x):
        raise ValueError("no luck")

    def ends(f, x):
        try:
            jax.block_until_ready(f(x))
        except jax.errors.JaxRuntimeError:
            return "raises"
        return "returns"

    failing = jax.jit(lambda x: io_callback(fail, STRUCT, x[0, 0], ordered=True))
    later = jax.jit(lambda x: io_callback(np.sin, STRUCT, x, ordered=True))
    big = jnp.ones((3000, 3000))
    in_flight = failing(big @ big @ big)  # dispatched while its operand is computed
    print(json.dumps([ends(lambda x: x, in_flight), *(ends(later, np.float32(1)) for _ in "123")]))
"""


@pytest.mark.long
def test_failed_token_of_jaxs_own_callbacks_fails_one_later_program_since_0_12_and_all_before(
    in_process,
):
    failed, *later = in_process(FAILED_TOKEN).value
    assert failed == "raises"
    assert later == (["raises", "returns", "returns"] if IS_0_12 else ["raises"] * 3)


def squares(look):
    """Return squares with derivative rules; `look` is called in the functions."""

    @jax.custom_jvp
    def with_jvp(x):
        look(x)
        return x * x

    @jax.custom_vjp
    def with_vjp(x):
        look(x)
        return x * x

    @jax.custom_vjp
    def optimized(x):
        return x * x

    with_jvp.defjvp(lambda x, dx: (with_jvp(*x), 2 * x[0] * dx[0]))
    with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, ct: (2 * x * ct,))
    optimized.defvjp(
        lambda x: (look(x), x * x, x)[1:], lambda x, ct: (2 * x * ct,), optimize_remat=True
    )
    return {"jvp": with_jvp, "vjp": with_vjp, "vjp with optimize_remat": jax.grad(optimized)}


def outcome(f, *args):
    try:
        return float(f(*args))
    except NotImplementedError:
        return "refused"


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize("rule", ["jvp", "vjp", "vjp with optimize_remat"])
def test_io_effects_are_allowed_in_custom_derivatives_since_0_12_and_refused_before(rule, ordered):
    """For ``jvp`` and ``vjp`` JAX refuses them only while it checks its jaxprs."""

    def run(io_callback):
        look = lambda x: io_callback(lambda x: None, None, x, ordered=ordered)  # noqa: E731
        with jax.enable_checks(True):
            return outcome(jax.jit(squares(look)[rule]), 2.0)

    assert run(jaxcb.io_callback) == run(io_callback)
    assert run(io_callback) == (4.0 if IS_0_12 else "refused")


def checkpointed(call):
    def f(x):
        call(jax.lax.stop_gradient(x))
        return jnp.sin(x)

    return jax.grad(jax.checkpoint(f))


def test_ffi_effects_are_allowed_in_a_differentiated_checkpoint_since_0_12_and_refused_before():
    call = jax.ffi.ffi_call("no_such_target", STRUCT, has_side_effect=True)
    trace = lambda x: str(jax.make_jaxpr(checkpointed(call))(x)).count("ffi_call")  # noqa: E731
    again = int(UPGRADED)  # the backward pass makes the call a second time
    assert outcome(trace, 2.0) == (1 + again if IS_0_12 else "refused")


def test_buffer_effects_are_refused_in_a_differentiated_checkpoint_by_every_version():
    def run(buffer_callback):
        host = lambda context, out, x: None  # noqa: E731
        return outcome(checkpointed(buffer_callback(host, STRUCT, has_side_effect=True)), 2.0)

    assert run(jaxcb.buffer_callback) == run(buffer_callback) == "refused"


SCAN = """
    import json, jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb

    seen = []
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    show = jaxcb.io(lambda x: seen.append(float(x)), result=None)

    def step(carry, x):
        show(carry)
        return carry + double(x), x

    with jaxcb.record() as r:
        total, _ = jax.jit(lambda x: jax.lax.scan(step, x, jnp.arange(3.0)))(1.0)
        jax.effects_barrier()
    kept = [[o.site.line, o.status.words] for o in r.recording.outcomes]
    print(json.dumps([float(total), seen, kept, len(r.recording)]))
"""


def test_callbacks_in_a_scan_are_right_with_the_scan_that_jax_prepares(in_process):
    total, seen, kept, calls = in_process(SCAN, JAX_SCAN3="1").value
    assert (total, seen, calls) == (7.0, [1.0, 1.0, 3.0], 6)
    assert sorted(kept) == [[9, "kept"], [10, "kept"]]
