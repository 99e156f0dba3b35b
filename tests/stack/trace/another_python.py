"""Run callbacks on a Python that says it is another one, and print what they did.

``python tests/stack/trace/another_python.py 3.99``. It says so only while the package is imported:
JAX reads the version later, too.
"""

from __future__ import annotations

import dis
import functools
import importlib
import json
import signal
import sys
import threading
import warnings
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

X = np.float32(0.5)


def pretend(version: str) -> None:
    """Import the package on a Python that says it is `version`."""
    numbers = *map(int, version.split(".")), 0, "final", 0
    with mock.patch.object(sys, "version_info", numbers):
        importlib.import_module("jupyter_jaxcb.diagnostics")


def interrupts(jaxcb: Any) -> Any:
    """Ctrl-C in eager calls, in the first call of a program and on its fast path."""
    made: list[int] = []

    def pressed(x: Any) -> Any:
        made.append(1)
        if len(made) in presses:
            signal.raise_signal(signal.SIGINT)
        return x

    call = jaxcb.pure(pressed, result="x")
    program = jax.jit(call)
    presses = {1, 2, 6}
    ends = []
    for f in (call, program, program, program, program, program):
        try:
            ends.append(float(f(X)))
        except KeyboardInterrupt:
            ends.append("KeyboardInterrupt")
    return ends, len(made)


def ends_programs(jaxcb: Any) -> Any:
    """`interrupt` while a program makes its calls on a thread of XLA: no further call begins."""
    inside, goes_on = threading.Event(), threading.Event()
    made: list[int] = []

    def waits(x: Any) -> Any:
        made.append(1)
        inside.set()
        while not goes_on.wait(0.01):  # an exception ends it; else it runs to its end
            pass
        return x

    call = jaxcb.io(waits, result="x")
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, y: call(y), x))
    ready = program.lower(X).compile()
    big = jnp.ones((1_000, 1_000))
    late = jax.jit(lambda x: functools.reduce(lambda y, _: y @ x / 1_000, range(8), x)[0, 0])
    late(big).block_until_ready()
    result = ready(late(big))  # on a thread of XLA, because its operand is still being computed
    inside.wait()
    jaxcb.stack.interrupt()
    threading.Timer(0.5, goes_on.set).start()
    try:
        result.block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        ended = type(error.__cause__).__name__
    else:
        ended = "no error"
    goes_on.set()
    return ended, len(made), float(jax.jit(call)(X))


def frames_of_an_error(jaxcb: Any) -> Any:
    """The user's exception of a compiled program, with the frames that led to the call."""

    def fails(x: Any) -> Any:
        raise KeyError("no luck")

    def layer(x: Any) -> Any:
        return jaxcb.pure_callback(fails, x, x)

    try:
        jax.block_until_ready(jax.jit(lambda x: layer(x))(X))
    except Exception as error:
        tb, names = jaxcb.host_error(error).__traceback__, []
        while tb is not None:
            names.append(tb.tb_frame.f_code.co_name)
            tb = tb.tb_next
        return names
    return "no error"


def fast_path(jaxcb: Any) -> Any:
    """The cause of an error of C++, which a program without effects raises from its second call."""
    fails: list[int] = []

    def host(x: Any) -> Any:
        if fails:
            raise KeyError("no luck")
        return x

    program = jax.jit(jaxcb.pure(host, result="x"))
    program(X), program(X)
    fails.append(1)
    try:
        program(X)
    except Exception as error:
        return type(error.__cause__).__name__, type(jaxcb.host_error(error)).__name__
    return "no error"


def threads(jaxcb: Any) -> Any:
    """Calls in workers, and what is known of running calls."""
    running: list[bool] = []
    all_running_calls = importlib.import_module("jupyter_jaxcb.diagnostics").all_running_calls

    def host(x: Any) -> Any:
        running.append(bool(all_running_calls()))
        return x * 2

    double = jaxcb.pure(host, result="x", executor="threads")
    result = jax.jit(jax.vmap(double))(jnp.arange(3.0)).tolist()
    return result, len(running), any(running)


def entry(jaxcb: Any) -> int:
    """Return the argument of the first RESUME of a crossing."""
    from jupyter_jaxcb.stack.dispatch import _crossing

    made = _crossing.single_call.__code__.co_consts
    (cross,) = (one for one in made if getattr(one, "co_name", "") == "cross")
    return next(one.arg for one in dis.get_instructions(cross) if one.opname == "RESUME")


if __name__ == "__main__":
    for version in sys.argv[1:]:
        pretend(version)
    import jupyter_jaxcb

    warnings.simplefilter("ignore")
    kinds = [ends_programs, interrupts, frames_of_an_error, fast_path, threads, entry]
    print(json.dumps({kind.__name__: kind(jupyter_jaxcb) for kind in kinds}))
