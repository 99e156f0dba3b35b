"""The program of two processes with two devices for test_processes.py; prints a JSON object."""

import json
import sys
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.gather import _gather, _rendezvous
from jupyter_jaxcb.report import summarize, to_text
from jupyter_jaxcb.stack import jax_compat

seen = []


def double(x):
    seen.append(x.tolist())
    return 2 * x


def look(x):
    seen.append(x.tolist())


FLAVORS = {
    "pure": lambda x: jaxcb.pure_callback(double, x, x),
    "io": lambda x: jaxcb.io_callback(double, x, x),
    "debug": lambda x: (jaxcb.debug_callback(look, x), 2 * x)[1],
}


def over_all(f, mesh):
    """What `f` results here of 8 numbers that all processes have a part of, and its recording."""
    x, spread = np.arange(8, dtype=np.float32), NamedSharding(mesh, P("d"))
    whole = jax.make_array_from_callback(x.shape, spread, lambda place: x[place])
    seen.clear()
    with jaxcb.record() as recorded:
        y = jax.block_until_ready(f(whole))
        jax.effects_barrier()
    return [part.data.tolist() for part in y.addressable_shards], recorded.recording


def reported(recording):
    """The facts that the tests check."""
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
        "devices": [way.devices for way in site.shapes],
    }


def programs():
    mesh = Mesh(np.array(jax.devices()), ("d",))
    for name, f in FLAVORS.items():
        spread = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
        for way, program in (("shard_map", spread), ("jit", jax.jit(f))):
            parts, own = over_all(program, mesh)
            gathered = jaxcb.gather(own)
            yield (
                f"{name}: {way}",
                {
                    "parts": parts,
                    "seen": sorted(seen),
                    "own": reported(own),
                    "all": reported(gathered),
                },
            )


def different():
    """A line that does something else in each process."""
    callback = jaxcb.pure(double, result=lambda x: x)
    with jaxcb.record() as recorded:
        f = jax.jit(lambda x: (callback(x), x)[jax.process_index()])
        for _ in range(3):
            jax.block_until_ready(f(jnp.float32(1)))
    return recorded.recording


def in_turn():
    """Calls of one process after the other."""
    callback = jaxcb.io(double, result=lambda x: x)
    with jaxcb.record() as recorded:
        for turn in range(6):
            if turn % 2 == jax.process_index():
                jax.block_until_ready(callback(np.float32(turn)))
            multihost_utils.sync_global_devices(f"turn {turn}")
    return recorded.recording


def turns(recording):
    """Whose they are, and what they were given: crossings and sites are renumbered."""
    given = {sample.crossing: sample.operands for sample in recording.sample_values}
    return {
        "by end": [call.process for call in recording],
        "by start": [call.process for call in sorted(recording, key=lambda call: call.start_ns)],
        "values": [given[call.crossing] for call in recording],
    }


def failing():
    """A host function that raises in process 1 only."""

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
    """What each process is reported where the one that calls for all of them fails.

    Process 1 has had an error of its own before, of the same number.
    """

    def host(x):
        raise ValueError("no luck for all")

    mesh = Mesh(np.array(jax.devices()), ("d",))
    try:
        over_all(jax.jit(lambda x: jaxcb.pure_callback(host, x, x)), mesh)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        return str(error)
    return "nothing"


def by_hand():
    """Gather through other transports."""
    own = different()
    found = {}
    piece, _rendezvous._PIECE = _rendezvous._PIECE, 100
    found["in pieces"] = jaxcb.gather(own).to_json()
    _rendezvous._PIECE = piece
    shared, _rendezvous.jax_compat.shared_store = _rendezvous.jax_compat.shared_store, lambda: None
    found["by collectives"] = jaxcb.gather(own).to_json()
    _rendezvous.jax_compat.shared_store = shared
    found["as usual"] = jaxcb.gather(own).to_json()
    return found


def skewed():
    """Two machines, of which one has a clock five seconds ahead."""
    own, clock, index = failing(), time.perf_counter_ns, jax.process_index()
    name, _gather.clock_name = _gather.clock_name, lambda: f"machine {index}"
    ahead = 5_000_000_000 * index
    _gather.time = types.SimpleNamespace(perf_counter_ns=lambda: clock() + ahead)
    gathered = jaxcb.gather(own)
    _gather.time, _gather.clock_name = time, name
    (start,) = [call.start_ns for call in gathered if call.process == index]
    (before,) = [call.start_ns for call in own]
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
    """Process 1 does not come, then both meet; then it comes with what is no recording."""
    own, found = different(), {}
    if jax.process_index() == 0:
        found["absent"] = raised(own, timeout=0.5)
    multihost_utils.sync_global_devices("process 0 has given up")
    found["again"] = len(jaxcb.gather(own).processes)
    found["no recording"] = raised(own if jax.process_index() == 0 else "nonsense")
    found["once more"] = len(jaxcb.gather(own).processes)
    found["gathered twice"] = raised(jaxcb.gather(own))
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
        "different": reported(differing) | {"text": to_text(differing, times=False)},
        "left in the store": sorted(left),
        "processes": [process.pid for process in differing.processes],
        "in turn": turns(jaxcb.gather(in_turn())),
        "failing": [[call.process, call.error] for call in failed],
        "failing for all": failing_for_all(),
        "by hand": by_hand(),
        "skewed": skewed(),
        "absent": absent(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
