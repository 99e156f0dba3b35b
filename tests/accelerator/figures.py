"""Prints the cost of a call on this device against JAX's own callbacks, as rows of a table.

The programs and the way to measure are those of `make bench`.
"""

from tests.performance import bench

ROUNDS = 5


def rows():
    """Yield one row of Markdown for each figure."""
    for name, pair in (("pure", bench.PURE), ("io", bench.IO), ("debug", bench.DEBUG)):
        ratio, _ = bench.loop_row(name, pair, ROUNDS)
        yield row(ratio)
    yield row(bench.vmap_rows(ROUNDS)[0])


def row(figure):
    """Return a row of Markdown: what, how many times as fast, the times."""
    what, share, _, times = figure
    return f"| {what} | {1 / float(share):.0f}× | {times} |"


if __name__ == "__main__":
    print(*rows(), sep="\n")
