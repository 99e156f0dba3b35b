"""Raise exceptions in numba.objmode, on the caller's thread and on four threads of XLA.

test_failure.py runs this in a separate process. It prints a JSON object: for each way to call, the
exception that the caller gets, and whether XLA made calls from threads of its own.
"""

import json
import signal
import threading

import jax
import jax.numpy as jnp
import numba
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

ON_THREADS_OF_XLA = []


def look_up():
    ON_THREADS_OF_XLA.append(threading.current_thread() is not threading.main_thread())
    return {}["missing"]


@numba.njit
def looked_up():
    with numba.objmode(y="float64"):
        y = look_up()
    return y


def failing(x):
    return x * looked_up()


def interrupted(x):
    with numba.objmode(y="float64"):
        y = signal.raise_signal(signal.SIGINT)
    return x * y


def outcome(program):
    ON_THREADS_OF_XLA.clear()
    try:
        jax.block_until_ready(program(jnp.ones(8)))
    except BaseException as error:
        return repr(jaxcb.host_error(error) or error), any(ON_THREADS_OF_XLA)


def main():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    flavors = {
        flavor.__name__: flavor(failing, result="x", compile="numba")
        for flavor in (jaxcb.pure, jaxcb.io)
    }
    programs = {f"{name}, caller": callback for name, callback in flavors.items()}
    programs["Ctrl-C"] = jaxcb.io(interrupted, result="x", compile="numba")
    for name, callback in flavors.items():  # last, as the calls of other devices may end later
        programs[f"{name}, shard_map"] = jax.shard_map(
            callback, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False
        )
    print(json.dumps({name: outcome(jax.jit(program)) for name, program in programs.items()}))


if __name__ == "__main__":
    main()
