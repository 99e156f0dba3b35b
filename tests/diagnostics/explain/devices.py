"""Compare explanations with runs on several devices; print a line for each program that fails.

Run by test_devices.py in a separate process.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.diagnostics.explain._same import (
    check,
    explain_only,
    in_new_thread,
    run,
)
from tests.stack.elision._battery import Hosts
from tests.stack.elision.programs import devices

XS = np.arange(12, dtype=np.float32).reshape(4, 3)


def structs(h):
    """Return a function and an argument of which only shape and sharding are known."""
    a = h.pure("a")
    x = jax.ShapeDtypeStruct(XS.shape, XS.dtype, sharding=NamedSharding(devices.MESH, P("d")))
    return devices.sharded(lambda x: a(x)), (x,)


def grad(h):
    a, b = h.pure("a"), h.pure("b")
    a.defvjp(lambda x: (a(x), x), lambda x, ct: (b(x) * ct,))
    return jax.jit(jax.grad(lambda x: devices.sharded(lambda y: a(y))(x).sum())), (XS,)


def elements(h):
    a = h.pure("a")
    return jax.vmap(devices.sharded(lambda y: a(y))), (np.stack([XS, XS]),)


def pmapped(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.pmap(lambda x: (b(x), a(x))[1]), (XS,)


@in_new_thread
def check_program(program):
    explain_hosts, run_hosts = Hosts(), Hosts()
    explained = explain_only(program(explain_hosts), explain_hosts)
    made = program(run_hosts)
    arrays = [
        jax.device_put(jnp.zeros(x.shape, x.dtype), x.sharding)
        if isinstance(x, jax.ShapeDtypeStruct)
        else x
        for x in made[1]
    ]
    check(explained, *run((made[0], arrays), run_hosts))


if __name__ == "__main__":
    assert len(jax.devices()) == 4
    programs = {row.name: row.program for row in devices.ROWS if not row.ran}
    programs |= {f.__name__: f for f in (structs, grad, elements, pmapped)}
    for name, program in programs.items():
        try:
            check_program(program)
        except Exception as error:
            print(f"FAILED {name}: {type(error).__name__} {error}")
    print(f"{len(programs)} programs")
