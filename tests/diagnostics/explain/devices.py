"""Programs on several devices, in a process of its own: prints a line for each that fails."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.diagnostics.explain._same import alone, ask, check, returns, run
from tests.stack.elision._battery import Hosts
from tests.stack.elision.programs import devices

XS = np.arange(12, dtype=np.float32).reshape(4, 3)


def structs(h):
    """Only the shape and the sharding of the argument are known."""
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


@alone
def same(program):
    hosts, others = Hosts(), Hosts()
    explained = ask(program(hosts), hosts)
    made = program(others)
    arrays = [
        jax.device_put(jnp.zeros(x.shape, x.dtype), x.sharding)
        if isinstance(x, jax.ShapeDtypeStruct)
        else x
        for x in made[1]
    ]
    check(explained, *run((made[0], arrays), others))


if __name__ == "__main__":
    assert len(jax.devices()) == 4
    programs = {row.name: row.program for row in devices.ROWS if returns(row.program)}
    programs |= {f.__name__: f for f in (structs, grad, elements, pmapped)}
    for name, one in programs.items():
        try:
            same(one)
        except Exception as error:
            print(f"FAILED {name}: {type(error).__name__} {error}")
    print(f"{len(programs)} programs")
