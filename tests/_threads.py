"""Run a function in several threads at once."""

import threading
from concurrent.futures import ThreadPoolExecutor


def in_threads(work, arguments):
    """Return what ``work(x)`` returns for each x of `arguments`, in threads that start together."""
    arguments = list(arguments)
    together = threading.Barrier(len(arguments), timeout=60)

    def run(x):
        together.wait()
        return work(x)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(run, arguments))
