"""What the live view costs a cell, measured in a real kernel: the ratio with it and without it.

    python tests/performance/bench_live.py

Host calls of 20 µs each, in a compiled loop of about two seconds; alternately with the live view
and without it (`%jax_record auto` both times). Nobody draws: this is the kernel's side.
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
    """Prints the ratio of medians."""
    manager = jupyter_client.KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code):
        texts = []

        def hear(message):
            if message["msg_type"] == "execute_result":
                texts.append(message["content"]["data"]["text/plain"])

        client.execute_interactive(code, output_hook=hear, timeout=120)
        return texts

    try:
        run(SETUP)
        times = {"DELAY": [], "1e9": []}
        for _ in range(ROUNDS):
            for delay, own in times.items():
                run(f"_live.DELAY_SECONDS = {delay}")
                own.append(float(run(CELL)[0]))
        on, off = map(statistics.median, times.values())
        print(f"live view: {on / off:.3f} ({on:.2f} / {off:.2f} s for 100,000 host calls of 20 µs)")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
