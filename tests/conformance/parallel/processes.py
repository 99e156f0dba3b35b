"""Run callbacks in spawned or forked child processes, and print their results as JSON."""

import json
import multiprocessing
import os
import signal
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

DEADLINE_SECONDS = 60
SCALAR = jax.ShapeDtypeStruct((), np.float32)
seen = []


@jaxcb.pure(result="x")
def double(x):
    seen.append(os.getpid())
    return 2 * x


@double.defjvp
def double_jvp(primals, tangents):
    return double(*primals), 2 * tangents[0]


@jaxcb.io(result=None, ordered=True)
def note(x):
    seen.append(float(x))


@jax.jit
def program(x):
    note(x)
    note(x + 1)
    return double(x)


def run_all(x):
    """Return the results of every kind of call, and whether this process made all host calls."""
    seen.clear()
    results = {
        "eager": float(double(np.float32(x))),
        "jit": float(program(np.float32(x))),
        "vmap": jax.vmap(double)(np.arange(3, dtype=np.float32)).tolist(),
        "grad": float(jax.jit(jax.grad(double))(np.float32(x))),
        "print": jaxcb.debug_print("{x}", x=x),
    }
    jax.effects_barrier()
    with jaxcb.record() as r:
        program(np.float32(x))
        jax.effects_barrier()
    pids = {call for call in seen if type(call) is int}
    notes = [call for call in seen if type(call) is float]
    return results | {
        "called in this process": pids == {os.getpid()},
        "notes": notes,
        "recorded": len(r.recording),
    }


FORKED = {
    "eager, numpy": lambda: double(np.float32(3)),
    "eager, JAX": lambda: double(ONE),
    "compiled before": lambda: program(np.float32(3)),
}


def spawned():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(run_all, [3, 4])


def forked():
    """Return the exit status of each child, and whether JAX warned about ``os.fork``.

    The status is 0 if the call returned 6 before the deadline.
    """
    found, messages = {}, set()
    for name, call in FORKED.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            child = os.fork()
        if child == 0:
            signal.alarm(DEADLINE_SECONDS)
            os._exit(0 if float(call()) == 6 else 1)
        _, status = os.waitpid(child, 0)
        found[name] = status
        messages.update(str(warning.message) for warning in caught)
    return found, any("os.fork() is incompatible with multithreaded code" in m for m in messages)


if __name__ == "__main__":
    ONE = jnp.float32(3)
    parent = run_all(3)
    results = {"parent": parent, "spawned": spawned()} if sys.argv[1] == "spawn" else {}
    if sys.argv[1] == "fork":
        results = {"forked": forked()}
    print(json.dumps(results))
