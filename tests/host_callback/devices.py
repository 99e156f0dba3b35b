"""Taps and calls on two of three CPU devices.

test_devices.py runs this file in a separate process. It prints a JSON object that has, for each
program, the host calls (value, transforms, id of the device or None), the returned value, the type
of the error, and from the recording the devices of the shards, the calls per run, and the statuses.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

CALLS = []
XS = np.arange(4, dtype=np.float32).reshape(2, 2)
TWO = jax.devices()[:2]
MESH = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,), devices=TWO)
SHARDED = jax.device_put(XS, NamedSharding(MESH, P("d")))
PROGRAMS = {}


def program(name):
    return lambda f: PROGRAMS.setdefault(name, f)


def note(arg, transforms, device=None):
    values = jax.tree.map(lambda x: np.asarray(x).tolist(), arg)
    CALLS.append((values, transforms, None if device is None else device.id))


def tap(x, **options):
    return hcb.id_tap(note, x, tap_with_device=True, **options)


def call(x, **options):
    def host(x, device):
        note(x, (), device)
        return np.sin(x)

    return hcb.call(host, x, result_shape=x, call_with_device=True, **options)


def sharded_over_two(f):
    return jax.shard_map(f, mesh=MESH, in_specs=P("d"), out_specs=P("d"))


def scan_of(f):
    return lambda x: lax.scan(lambda c, _: (2 * f(c), None), x, None, length=2)[0]


PROGRAMS |= {
    "pmap": lambda: jax.pmap(tap)(XS),
    "pmap on the second device": lambda: jax.pmap(tap, devices=TWO[1:])(XS[:1]),
    "pmap on both devices, swapped": lambda: jax.pmap(tap, devices=TWO[::-1])(XS),
    "pmap of vmap": lambda: jax.pmap(jax.vmap(tap))(XS),
    "vmap of pmap": lambda: jax.vmap(jax.pmap(tap), in_axes=1)(XS[:, :, None]),
    "pmap of scan": lambda: jax.pmap(scan_of(tap))(XS),
    "pmap of grad": lambda: jax.pmap(jax.grad(lambda x: (tap(x) ** 2).sum()))(XS),
    "shard_map": lambda: jax.jit(sharded_over_two(tap))(SHARDED),
    "sharded jit": lambda: jax.jit(tap)(SHARDED),
    "sharded jit, device 1": lambda: jax.jit(lambda x: tap(x, device_index=1))(SHARDED),
    "sharded jit, two taps": lambda: jax.jit(lambda x: tap(2 * tap(x)))(SHARDED),
    "sharded jit of vmap": lambda: jax.jit(jax.vmap(tap))(SHARDED),
    "sharded jit of scan": lambda: jax.jit(scan_of(tap))(SHARDED),
    "sharded, eager": lambda: tap(SHARDED),
    "one device": lambda: jax.jit(tap)(1.0),
    "one device, device 1": lambda: jax.jit(lambda x: tap(x, device_index=1))(1.0),
    "eager, device 1": lambda: tap(1.0, device_index=1),
    "on the second device": lambda: jax.jit(tap)(jax.device_put(1.0, jax.devices()[1])),
    "device 3 of 3": lambda: tap(1.0, device_index=3),
    "device 2 where two of three run": lambda: jax.jit(lambda x: tap(x, device_index=2))(SHARDED),
    "call in pmap": lambda: jax.pmap(call)(XS),
    "call in sharded jit": lambda: jax.jit(lambda x: call(x) + 1)(SHARDED),
    "call in sharded jit, device 1": lambda: jax.jit(lambda x: call(x, device_index=1))(SHARDED),
    "call, sharded and eager": lambda: call(SHARDED),
}


@program("the device that calls")
def _():
    lowered = [jax.jit(lambda x, n=n: tap(x, device_index=n)).lower(SHARDED) for n in (0, 1)]
    return [[f"device_ids=[{n}]" in program.as_text() for n in (0, 1)] for program in lowered]


@program("code around a pmap")
def _():
    return jax.jit(lambda x: jax.pmap(lambda x: x + 1)(tap(x)))(XS)


@program("failing call in sharded jit")
def _():
    def fails(x):
        raise KeyError("no luck")

    return jax.jit(lambda x: hcb.call(fails, x, result_shape=x) + 1)(SHARDED)


@program("eager tap after a failing call")
def _():
    def fails(x):
        raise KeyError("no luck")

    try:
        jax.block_until_ready(jax.jit(lambda x: hcb.call(fails, x, result_shape=x) + 1)(SHARDED))
    except RuntimeError:
        return tap(1.0), call(0.0)
    raise AssertionError("the call has not failed")


@program("failing tap in sharded jit")
def _():
    def fails(x, transforms):
        raise KeyError("no luck")

    return jax.jit(lambda x: tap(hcb.id_tap(fails, x)))(SHARDED)


@program("barrier from each of two devices")
def _():
    f = jax.jit(lambda x: tap((x @ x)[0, 0]))
    for device in TWO:
        f(jax.device_put(jnp.ones((300, 300)), device))


def run(f):
    CALLS.clear()
    found = {"error": "", "back": None}
    with jaxcb.record() as r:
        try:
            found["back"] = jax.tree.map(lambda x: np.asarray(x).tolist(), f())
        except Exception as error:
            found["error"] = type(error).__name__
        try:
            hcb.barrier_wait()
        except hcb.CallbackException as error:
            found["barrier"] = repr(error.__cause__)
    found |= {
        "calls": CALLS[:],
        "shards": sorted(r.recording.lowered[call.lowered].device for call in r.recording),
        "compiled": [outcome.compiled for outcome in r.recording.outcomes],
        "statuses": [outcome.status for outcome in r.recording.outcomes],
    }
    return found


if __name__ == "__main__":
    print(json.dumps({name: run(f) for name, f in PROGRAMS.items()}))
