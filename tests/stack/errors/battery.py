"""Make every flavor fail with every kind of failure, in every kind of program.

    battery.py FLAVOR ...

test_battery.py runs this in a separate process with two CPU devices. It prints a JSON object with,
for each case, the exception raised, what the user sees of it, and what the next call returns. A
case that takes more than 20 seconds dumps all stacks and exits.
"""

import dataclasses
import faulthandler
import functools
import itertools
import json
import sys
import traceback
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from tests.interface import error_for_user

LIMIT_SECONDS = 20

warnings.simplefilter("ignore")  # jax.pmap is deprecated

ZERO, ONE, TWO = map(jnp.float32, range(3))
MESH = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


class Odd(str):
    def __repr__(self):
        return "<an 'odd' [repr]; jaxcb host error 1]>"


class Reactor(Exception):
    def __init__(self, core, *, heat):
        super().__init__(f"core {core} at {heat} K")


class Stop(BaseException):
    pass


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    why: str


def raising(make):
    def failure(x):
        raise make()

    return failure


FAILURES = {
    "ValueError": raising(lambda: ValueError("no luck")),
    "KeyError": raising(lambda: KeyError(Odd("key"))),
    "required arguments": raising(lambda: Reactor(3, heat=900)),
    "frozen": raising(lambda: Frozen("cold")),
    "BaseException": raising(lambda: Stop("enough")),
    "SystemExit": raising(lambda: SystemExit(3)),
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "wrong shape": lambda x: np.zeros((2, 3), np.float32),
    "wrong dtype": lambda x: np.complex64(1 + 2j),
}


class Host:
    """Return x + 1, but fail at `bad`."""

    __name__ = "host"

    def __init__(self, flavor, failure):
        self.flavor, self.failure, self.bad = flavor, failure, None

    def __call__(self, *args):
        x = args[-1]
        result = np.float32(x) + np.float32(1)
        if x == self.bad:
            result = self.failure(x)
        if self.flavor == "buffer":
            args[1][...] = result
        elif self.flavor != "debug":
            return result


def call(flavor, host, x):
    """Return x + 1, computed by the host function, or next to it for flavors without a result."""
    if flavor == "debug":
        jaxcb.debug_callback(host, x)
        return x + 1
    if flavor == "pure":
        return jaxcb.pure_callback(host, x, x, vmap_method="sequential")
    if flavor == "buffer":
        return jaxcb.buffer_callback(host, x, vmap_method="sequential")(x)
    return jaxcb.io_callback(host, x, x, ordered=flavor == "io ordered")


_programs = {}


def once(f, make):
    """Return the program `make()`, cached so that the call that must work reuses the failed one."""
    if f not in _programs:
        _programs[f] = make()
    return _programs[f]


def third_call(f, x):
    """Without effects, the third call runs on JAX's C++ fast path."""
    again = once(f, lambda: jax.jit(f))
    again(ZERO)
    again(ONE)
    return again(x)


def over_elements(f, x):
    return once(f, lambda: jax.jit(jax.vmap(f)))(x)


def over_steps(f, x):
    return once(f, lambda: jax.jit(lambda x: jax.lax.scan(lambda c, x: (c, f(x)), 0, x)[1]))(x)


def over_shards(f, x):
    def make():
        shard = jax.shard_map(
            lambda x: f(x[0])[None], mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False
        )
        return jax.jit(shard)

    return once(f, make)(x)


def by_pmap(f, x):
    return once(f, lambda: jax.pmap(f))(x)


# name: (how to run f(x), x, the value at which the host function fails)
PROGRAMS = {
    "eager": (lambda f, x: f(x), TWO, 2),
    "jit, first call": (lambda f, x: jax.jit(f)(x), TWO, 2),
    "jit, third call": (third_call, TWO, 2),
    "ahead of time": (lambda f, x: once(f, lambda: jax.jit(f).lower(x).compile())(x), TWO, 2),
    "vmap, batch element 2": (over_elements, np.arange(4, dtype=np.float32), 2),
    "scan, step 2": (over_steps, np.arange(4, dtype=np.float32), 2),
    "shard_map, shard 1": (over_shards, np.arange(2, dtype=np.float32), 1),
    "pmap, shard 1": (by_pmap, np.arange(2, dtype=np.float32), 1),
}


def impossible(flavor, kind, failure):
    """Return whether JAX refuses the program, or the flavor cannot fail like this."""
    if flavor == "io ordered" and kind.startswith("vmap"):
        return True
    return failure.startswith("wrong") and flavor in ("debug", "buffer")


def run(program, f, x):
    result = jax.block_until_ready(program(f, x))
    jax.effects_barrier()
    return np.asarray(result).tolist()


def outcome(flavor, kind, failure):
    program, x, bad = PROGRAMS[kind]
    host = Host(flavor, FAILURES[failure])

    def f(x):
        return call(flavor, host, x)

    host.bad = bad
    try:
        reported = {"raised": f"nothing, but {run(program, f, x)}"}
    except BaseException as error:
        reported = description(error)
    host.bad = None
    reported["next"] = run(program, f, x) == (np.asarray(x) + 1).tolist()
    reported["unrelated"] = run(lambda f, x: f(x), unrelated(flavor), TWO)
    return reported


@functools.cache
def unrelated(flavor):
    return jax.jit(lambda x: call(flavor, plus, x))


def plus(*args):
    if len(args) == 3:
        args[1][...] = args[2] + 1
    else:
        return args[0] + np.float32(1)


def description(error):
    """Describe the exception, and what a notebook or a script shows of it."""
    shown = error_for_user(error, error.__traceback__)
    original, frames = shown if shown else (error, error.__traceback__)
    lines = traceback.format_exception_only(original)
    return {
        "raised": type(error).__name__,
        "runtime error": isinstance(error, jax.errors.JaxRuntimeError),
        "cause": type(error.__cause__).__name__,
        "is the cause": error.__cause__ is original,
        "itself": error is original,
        "reached": jaxcb.host_error(error) is original,
        "frames": [frame.name for frame in traceback.extract_tb(frames)],
        "shown": "".join(lines).splitlines(),
        "length": len(str(error)),
    }


def main(*flavors):
    found = {}
    for flavor, kind, failure in itertools.product(flavors, PROGRAMS, FAILURES):
        if not impossible(flavor, kind, failure):
            faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
            found[f"{flavor}: {kind}: {failure}"] = outcome(flavor, kind, failure)
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
