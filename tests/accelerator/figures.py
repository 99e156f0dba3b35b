"""Prints the cost of a call on this device against JAX's own callbacks, as rows of a table.

The programs are those of `make bench`, here by wall time: a call waits for the device.
"""

import time

from benchmarks import rows

SECONDS = 1
TURNS = 5
SHOWN = ("pure call in a loop", "io call in a loop", "debug call in a loop", "batch element")


def table():
    """Yield one row of Markdown for each figure."""
    rows.clock = time.perf_counter
    for name, row in rows.ROWS.items():
        if row.jax and row.recorded and name.startswith(SHOWN):
            yield figure(name)


def figure(name):
    """Return a row of Markdown: what, how many times as fast, the times."""
    us = {"ours": [], "jax": []}
    for who in [*us] * TURNS:
        us[who] += [seconds * 1e6 for seconds in rows.measure(name, who, SECONDS / TURNS)]
    ours, jax = min(us["ours"]), min(us["jax"])
    return f"| {name} / JAX's | {jax / ours:.0f}× | {ours:.2f} / {jax:.1f} µs |"


if __name__ == "__main__":
    print(*table(), sep="\n")
