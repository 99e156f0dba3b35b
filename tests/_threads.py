"""Run a function in several threads at once."""

import threading


def in_threads(work, arguments):
    """Call ``work(x)`` for each x of `arguments`, each in a thread of its own; wait for all."""
    threads = [threading.Thread(target=work, args=(x,)) for x in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
