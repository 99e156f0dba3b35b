"""Which threads compute."""

import threading

import pytest

from jupyter_jaxcb.diagnostics.hang._cpu import cpu_times, cpu_use


@pytest.mark.parametrize("name", ["someone", "jupyter_jaxcb live"])
def test_busiest_thread_is_never_one_of_this_package(name):
    """It would be named as the one that held the GIL, on a busy machine."""
    begun, measured, computed, over = (threading.Event() for _ in range(4))

    def computes():
        begun.set()
        measured.wait()
        sum(range(10**7))
        computed.set()
        over.wait()

    thread = threading.Thread(target=computes, name=name)
    thread.start()
    begun.wait()
    since = cpu_times()
    measured.set()
    computed.wait()
    used = cpu_use(since)
    over.set()
    thread.join()
    assert used.threads[thread.ident]
    assert used.busiest == (thread.ident if name == "someone" else None)
