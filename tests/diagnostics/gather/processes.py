"""Make and gather recordings in a process with two devices; print a JSON object of facts.

test_processes.py runs this script in two processes.
"""

import json
import sys
import time
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback, multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import jax_compat
from jupyter_jaxcb.diagnostics.gather import _gather, _rendezvous
from jupyter_jaxcb.report import summarize, to_text

seen = []


def double(x):
    seen.append(x.tolist())
    return 2 * x


def look(x):
    seen.append(x.tolist())


OBSERVED = {
    "pure": lambda x: jax.pure_callback(double, x, x),
    "io": lambda x: io_callback(double, x, x) + 1,
    "debug": lambda x: (jax.debug.callback(look, x), 2 * x)[1],
    "pure, called in process 1": lambda x: jax.pure_callback(
        double, x, x, sharding=jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    ),
}
FLAVORS = {
    "pure": lambda x: jaxcb.pure_callback(double, x, x),
    "io": lambda x: jaxcb.io_callback(double, x, x),
    "debug": lambda x: (jaxcb.debug_callback(look, x), 2 * x)[1],
}


def over_all(f, mesh, record=jaxcb.record):
    """Call `f` with 8 numbers sharded over all processes; return local shards and the recording."""
    x, spread = np.arange(8, dtype=np.float32), NamedSharding(mesh, P("d"))
    whole = jax.make_array_from_callback(x.shape, spread, lambda index: x[index])
    seen.clear()
    with record() as recorded:
        y = jax.block_until_ready(f(whole))
        jax.effects_barrier()
    return [part.data.tolist() for part in y.addressable_shards], recorded.recording


def facts(recording):
    """Return the facts that the tests check."""
    (site,) = summarize(recording)
    return {
        "calls": [
            [call.process, recorded.shard, recorded.device, recording.threads[call.thread]]
            for call in recording
            for recorded in [recording.lowered[call.lowered]]
        ],
        "status": str(site.status),
        "reason": site.reason,
        "expected": site.expected,
        "notes": list(site.notes),
        "devices": [shapes.devices for shapes in site.shapes],
    }


def programs():
    mesh = Mesh(np.array(jax.devices()), ("d",))
    for name, f in FLAVORS.items():
        spread = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
        for kind, program in (("shard_map", spread), ("jit", jax.jit(f))):
            parts, local = over_all(program, mesh)
            gathered = jaxcb.gather(local)
            yield (
                f"{name}: {kind}",
                {
                    "parts": parts,
                    "seen": sorted(seen),
                    "local": facts(local),
                    "gathered": facts(gathered),
                },
            )


def observed():
    """Return, for JAX's own callbacks, local shards, facts and warnings."""
    everywhere, some = Mesh(np.array(jax.devices()), ("d",)), jax.devices()[::-2]
    for name, f in OBSERVED.items():
        for mesh in (everywhere, Mesh(np.array(some), ("d",))):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                parts, local = over_all(jax.jit(f), mesh, jaxcb.observe_jax)
            texts = [str(one.message) for one in caught]
            key = name if mesh is everywhere else f"{name}, on devices 3 and 1"
            yield key, {"parts": parts, "local": facts(local), "warned": texts}


def different():
    """Return a recording in which a call site has another status in each process."""
    callback = jaxcb.pure(double, result=lambda x: x)
    with jaxcb.record() as recorded:
        f = jax.jit(lambda x: (callback(x), x)[jax.process_index()])
        for _ in range(3):
            jax.block_until_ready(f(jnp.float32(1)))
    return recorded.recording


def in_turn():
    """Return a recording in which the processes take turns calling."""
    callback = jaxcb.io(double, result=lambda x: x)
    with jaxcb.record() as recorded:
        for turn in range(6):
            if turn % 2 == jax.process_index():
                jax.block_until_ready(callback(np.float32(turn)))
            multihost_utils.sync_global_devices(f"turn {turn}")
    return recorded.recording


def turns(recording):
    """Return the process and the arguments of every call, by end and by start."""
    given = {sample.crossing: sample.operands for sample in recording.sample_values}
    return {
        "by end": [call.process for call in recording],
        "by start": [call.process for call in sorted(recording, key=lambda call: call.start_ns)],
        "values": [given[call.crossing] for call in recording],
    }


def failing():
    """Return the recording of a host function that raises in process 1 only."""

    def host(x):
        if jax.process_index() == 1:
            raise ValueError("no luck here")
        return x

    with jaxcb.record() as recorded:
        try:
            f = jax.jit(lambda x: jaxcb.pure_callback(host, x, x))
            jax.block_until_ready(f(jnp.float32(1)))
        except (jax.errors.JaxRuntimeError, ValueError):
            pass
    return recorded.recording


def failing_for_all():
    """Return the error in each process if process 0, which calls for all, fails.

    Process 1 had a different error before, with the same number.
    """

    def host(x):
        raise ValueError("no luck for all")

    mesh = Mesh(np.array(jax.devices()), ("d",))
    try:
        over_all(jax.jit(lambda x: jaxcb.pure_callback(host, x, x)), mesh)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        return str(error)
    return "nothing"


def with_every_transport():
    """Gather in small pieces, through collectives, and as usual."""
    local = different()
    found = {}
    piece, _rendezvous._PIECE = _rendezvous._PIECE, 100
    found["in pieces"] = jaxcb.gather(local).to_json()
    _rendezvous._PIECE = piece
    shared, _rendezvous.jax_compat.shared_store = _rendezvous.jax_compat.shared_store, lambda: None
    found["by collectives"] = jaxcb.gather(local).to_json()
    _rendezvous.jax_compat.shared_store = shared
    found["as usual"] = jaxcb.gather(local).to_json()
    return found


def skewed():
    """Gather as if on two machines, the clock of the second being five seconds ahead."""
    local, clock, index = failing(), time.perf_counter_ns, jax.process_index()
    name, _gather.clock_name = _gather.clock_name, lambda: f"machine {index}"
    ahead = 5_000_000_000 * index
    _gather.time = types.SimpleNamespace(perf_counter_ns=lambda: clock() + ahead)
    gathered = jaxcb.gather(local)
    _gather.time, _gather.clock_name = time, name
    (start,) = [call.start_ns for call in gathered if call.process == index]
    (before,) = [call.start_ns for call in local]
    return {
        "processes": [process._asdict() for process in gathered.processes],
        "clocks": gathered.environment["clocks"],
        "moved_ns": start - before,
    }


def raised(recording, **options):
    try:
        jaxcb.gather(recording, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def absent():
    """Process 1 is absent from the first gather and passes a wrong argument to the third."""
    local, found = different(), {}
    if jax.process_index() == 0:
        found["first"] = raised(local, timeout=0.5)
    multihost_utils.sync_global_devices("process 0 has given up")
    found["second"] = len(jaxcb.gather(local).processes)
    found["third"] = raised(local if jax.process_index() == 0 else "nonsense")
    found["fourth"] = len(jaxcb.gather(local).processes)
    found["gathered twice"] = raised(jaxcb.gather(local))
    return found


def main():
    index, port, count = map(int, sys.argv[1:])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", count, index)
    differing = jaxcb.gather(different())
    left = jax_compat.shared_store().under("jupyter_jaxcb/gather/0")
    failed = jaxcb.gather(failing())
    found = {
        "programs": dict(programs()),
        "observed": dict(observed()),
        "different": facts(differing) | {"text": to_text(differing, times=False)},
        "left in the store": sorted(left),
        "processes": [process.pid for process in differing.processes],
        "in turn": turns(jaxcb.gather(in_turn())),
        "failing": [[call.process, call.error] for call in failed],
        "failing for all": failing_for_all(),
        "transports": with_every_transport(),
        "skewed": skewed(),
        "absent": absent(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
