"""Measure what the live view costs a cell in a real kernel: the ratio with and without it.

    python -m benchmarks.live

A compiled loop of about two seconds makes host calls of 20 µs each, alternately with and without
the live view (`%jax_record auto` both times). No front end draws, so this is the kernel's cost.
"""

import statistics
import sys

import jupyter_client

ROUNDS = 7
SETUP = """
%load_ext jupyter_jaxcb
import time, jax, numpy as np, jupyter_jaxcb as jaxcb
from jupyter_jaxcb.notebook.display import _live
DELAY = _live.DELAY_SECONDS

@jaxcb.pure(result="x")
def work(x):
    until = time.perf_counter() + 20e-6
    while time.perf_counter() < until:
        pass
    return x

f = jax.jit(lambda x: jax.lax.fori_loop(0, 100_000, lambda i, y: work(y), x))
f(np.float32(1)).block_until_ready()
"""
CELL = "t = time.perf_counter(); f(np.float32(1)).block_until_ready(); time.perf_counter() - t"


def main():
    """Print the ratio of the medians."""
    manager = jupyter_client.KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code):
        texts = []

        def receive(message):
            if message["msg_type"] == "execute_result":
                texts.append(message["content"]["data"]["text/plain"])

        client.execute_interactive(code, output_hook=receive, timeout=120)
        return texts

    try:
        run(SETUP)
        times = {"DELAY": [], "1e9": []}
        for _ in range(ROUNDS):
            for delay, measured in times.items():
                run(f"_live.DELAY_SECONDS = {delay}")
                measured.append(float(run(CELL)[0]))
        on, off = map(statistics.median, times.values())
        print(f"live view: {on / off:.3f} ({on:.2f} / {off:.2f} s for 100,000 host calls of 20 µs)")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
