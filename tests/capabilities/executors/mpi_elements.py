"""Run batch elements on MPI workers and print the outcome as JSON.

This script has no ``if __name__ == "__main__":`` on purpose: workers must not run it again.
"""

import collections
import dataclasses
import json
import os
import sys
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

executor, folder = sys.argv[1:]
X = np.arange(24, dtype=np.float32)
print("script", flush=True)


@dataclasses.dataclass
class Pair:  # workers cannot import it
    one: np.ndarray


jax.tree_util.register_dataclass(Pair)


def tripled(pair):
    import os

    with open(os.path.join(folder, f"{int(pair.one)}"), "ab") as file:
        file.write(b".")
    return {"sine": np.sin(pair.one), "again": Pair(3 * pair.one)}


def failing(x):
    import threading

    if x == 7:
        raise UserWarning("seven")
    if x == 19:
        threading.Event().wait()
    return x


def vmapped(host, result, **options):
    return jax.jit(
        jax.vmap(
            lambda x: jaxcb.pure_callback(
                host, result(x), x, vmap_method="sequential", executor=executor, **options
            )
        )
    )


f = vmapped(tripled, lambda pair: {"sine": pair.one, "again": pair}, chunksize=5)
with jaxcb.record() as r:
    returned_value = f(Pair(X))
    jax.block_until_ready(returned_value)
g = vmapped(failing, lambda x: x, timeout=1.0)
errors = []
for elements in (X, X[8:]):
    with pytest.raises(Exception) as caught:
        jax.block_until_ready(g(elements))
    error = jaxcb.host_error(caught.value)
    errors.append([type(error).__name__, *getattr(error, "__notes__", ())])
h = vmapped(lambda x: (threading.Event().wait(0.2), x)[1], lambda x: x, chunksize=1)
h(X[:2])
threading.Timer(0.3, os.kill, (os.getpid(), 2)).start()
try:
    h(np.arange(100, dtype=np.float32)).block_until_ready()
    interrupted = False
except KeyboardInterrupt:
    interrupted = True
print(
    json.dumps(
        {
            "equal": [
                np.asarray(returned_value["sine"]).tobytes() == np.sin(X).tobytes(),
                np.asarray(returned_value["again"].one).tobytes() == (3 * X).tobytes(),
            ],
            "made": collections.Counter(os.path.getsize(p) for p in os.scandir(folder)),
            "elements": sorted(call.element for call in r.recording),
            "ours": sorted({worker.pid == os.getpid() for worker in r.recording.workers}),
            "pids": len({worker.pid for worker in r.recording.workers}),
            "errors": errors,
            "interrupted": interrupted,
            "afterwards": h(X[:3]).tolist(),
        }
    )
)
