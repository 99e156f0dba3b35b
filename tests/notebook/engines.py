"""Run ``%%px`` cells on two ipyparallel engines, and print their outputs as a JSON object.

test_engines.py runs this file in a separate process, because a cluster starts an event loop.
"""

import json
import os
import signal
import socket
import sys

import ipyparallel
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

SETUP = """
import os, socket, threading
os.environ["JAX_PLATFORMS"] = "cpu"
"""
IMPORTS = """
import jax, jax.numpy as jnp
import jupyter_jaxcb as jaxcb
jax.distributed.initialize("127.0.0.1:{port}", 2, int(rank))
print("I am", jax.process_index())
"""
REGISTERED = """
%%jax_callback pure --result x --vmap-method sequential
def double(x):
    return 2 * x
"""
RECORDED = """
%%jax_record mine
y = jax.jit(jax.vmap(double))(jnp.arange(2.0 + rank))
"""
UNLUCKY = """
%%jax_callback pure --result x
def unlucky(x):
    raise ValueError("no luck")
"""
WAITING = """
%%jax_callback io --result x
def waiting(x):
    with socket.create_connection(("127.0.0.1", {port})):
        threading.Event().wait(60)
    return x
"""


def listening():
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen()
    return found, found.getsockname()[1]


def wait_for_all_output():
    """Let ``%%px`` wait for all output. It stops after a second, too soon on a busy machine."""
    wait = ipyparallel.AsyncResult.wait_for_output
    ipyparallel.AsyncResult.wait_for_output = lambda result, timeout=-1: wait(result)


class Cells:
    """Runs cells on the engines with ``%%px``, as in a terminal, and keeps their outputs."""

    def __init__(self):
        self.shell = InteractiveShell.instance()
        self.found = {}

    def __call__(self, name, cell):
        raised = ""
        with capture_output() as captured:
            try:
                result = self.shell.run_cell(f"%%px --no-stream\n{cell.strip()}")
                result.raise_error()
            except Exception as error:
                raised = type(error).__name__
        self.found[name] = {
            "stdout": captured.stdout,
            "stderr": captured.stderr,
            "raised": raised,
            "outputs": [
                {
                    "data": {k: str(v) for k, v in output.data.items()},
                    "metadata": [*output.metadata],
                }
                for output in captured.outputs
            ],
        }


def interrupted(cluster, engines):
    """Interrupt engines whose host function waits; return the names of the errors."""
    listener, port = listening()
    with listener:
        engines.execute(WAITING.format(port=port).strip(), silent=False, block=True)
        running = engines.execute("y = waiting(jnp.float32(1))", silent=False, block=False)
        connections = [listener.accept()[0] for _ in range(2)]
        cluster.signal_engines_sync(signal.SIGINT)
        try:
            running.get(30)
            return "nothing"
        except ipyparallel.error.CompositeError as error:
            return sorted(name for name, *_ in error.elist)
        finally:
            for connection in connections:
                connection.close()


def cluster():
    """Return a cluster of two engines, with ports below those that the system gives out as free.

    By default, the controller finds free ports and closes them, and its processes open them again.
    Another program can take one in between; the cluster then waits forever.
    """
    first = 12_000 + 32 * (os.getpid() % 600)
    ports = f"--IPController.ports={first}-{first + 31}"
    return ipyparallel.Cluster(n=2, log_level=40, controller_args=[ports])


def main():
    # Bound until the end, so that no other program gets this port; gRPC can share it.
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    wait_for_all_output()
    with cluster() as client:
        px = Cells()  # creates the shell, in which the client registers %%px
        client.activate()
        engines = client[:]
        engines.scatter("rank", client.ids, flatten=True, block=True)
        px("setup", SETUP)
        px("loaded", "%load_ext jupyter_jaxcb")
        px("imported", IMPORTS.format(port=port))
        px("registered", REGISTERED)
        px("recorded", RECORDED)
        px("unlucky", UNLUCKY)
        px("failed", "unlucky(jnp.float32(1))")
        px("explained", "%jax_explain double(1.0)")
        px("listed", "%jax_callbacks")
        px.found["interrupted"] = interrupted(client.cluster, engines)
        px("afterwards", "print(double(jnp.float32(4)))")
        px("unloaded", "%unload_ext jupyter_jaxcb")
        px.found["pulled"] = [repr(recording) for recording in engines.pull("mine", block=True)]
    print(json.dumps(px.found))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
