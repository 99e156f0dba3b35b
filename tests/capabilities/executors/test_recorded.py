"""The recording has the worker and queueing time of each batch element; Ctrl-C cancels elements."""

import concurrent.futures
import functools
import os
import re
import signal
import socket
import threading
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recorder, Recording, active
from tests.interface import to_text

X = np.arange(12, dtype=np.float32)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_each_element_has_its_worker_and_its_times(elements, executor):
    together = "threads" in executor
    during, clock = {}, functools.partial(time.perf_counter_ns)

    def host(x):
        during[int(x)] = clock()
        return 2 * x

    with jaxcb.record() as r:
        elements(host, executor=executor, chunksize=2)(X).block_until_ready()
    recording = r.recording
    assert sorted(call.element for call in recording) == list(range(12))
    workers = {worker.thread: worker for worker in recording.workers}
    assert {call.thread for call in recording} <= set(workers)
    for worker in workers.values():
        assert worker.host == socket.gethostname()
        assert (worker.pid == os.getpid()) is together
        name = recording.threads[worker.thread]
        assert name.startswith("worker ") and (together or f"pid {worker.pid}" in name)
    for call in recording:
        instant = during.get(call.element, call.start_ns)  # of threads
        assert call.start_ns <= instant <= call.end_ns and call.queued_ns >= 0
    # Only the first element of each chunk has a queueing time.
    assert sum(call.queued_ns > 0 for call in recording) <= 6
    assert Recording.from_json(recording.to_json()).workers == recording.workers


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_calls_are_recorded_as_workers_make_them(elements, tmp_path, executor):
    """Element 0 returns once the call for element 1 is recorded, or gives up after ten seconds."""
    go = str(tmp_path / "go")

    def host(x):
        import os
        import threading

        for _ in range(1_000 if x == 0 else 0):
            if os.path.exists(go):
                break
            threading.Event().wait(0.01)
        return x

    def watch():
        while not over.wait(0.01):
            rows = recorder.snapshot(mark, 0).calls
            if len(rows):
                seen.append(rows["element"].tolist())
                (tmp_path / "go").touch()
                return

    over, seen = threading.Event(), []
    with jaxcb.record():
        recorder = active()
        mark = recorder.mark()
        watching = threading.Thread(target=watch)
        watching.start()
        elements(host, executor=executor, chunksize=1)(X[:2]).block_until_ready()
        over.set()
        watching.join()
    assert seen == [[1]]


def test_calls_made_before_a_failure_are_recorded(elements, calls, failure):
    count = calls.counter()

    def host(x):
        count("calls")
        if x == 5:
            raise ValueError
        return x

    with jaxcb.record() as r:
        failure(elements(host, executor="threads:1", chunksize=2), X)
        # The only thread runs this after everything queued before it.
        elements(lambda x: x, executor="threads:1")(X[:1]).block_until_ready()
    assert len(r.recording) == calls.counted()["calls"] + 1
    assert [call.element for call in r.recording if call.error] == [5]


@pytest.mark.kept
def test_report_counts_the_elements_of_each_worker(elements):
    with jaxcb.record() as r:
        elements(lambda x: x, executor="threads:1", chunksize=3)(X).block_until_ready()
    text = to_text(r.recording)
    assert re.search(
        r"12 calls by 1 worker: worker 1 · jaxcb-threads_0: 12; waited \S+ \S+ for a worker, "
        r"ran \S+ \S+ \(\d+ % waiting\)",
        text,
    )
    assert "queued" not in text  # a word for callbacks for which the program does not wait
    assert "worker" not in to_text(r.recording, times=False)


def test_times_of_another_machine_are_converted_to_our_clock(elements):
    with jaxcb.record() as r:
        elements(lambda x: x)(X[:1]).block_until_ready()
    lowered, recorder, ahead = r.recording.lowered[0], Recorder(), 5_000_000_000
    far = SimpleNamespace(host="far", pid=7, thread=0, name="")
    # Each row is in our clock; the second one leaves an uncertainty of 1 ns.
    for sent, start, end, back in ((100, 110, 190, 200), (140, 141, 199, 200)):
        stamps = [start + ahead, end + ahead]
        part = far, np.array([0]), stamps, sent, back
        recorder.lowered(lowered)
        recorder.called(recorder.worker_rows(*part).tobytes())
    recording = recorder.freeze()
    (worker,) = recording.workers
    assert recording.threads == ("worker 1 · pid 7 · far",)
    assert worker.clock_error_ns == 1
    second = list(recording)[1]
    assert abs(second.start_ns - 141) <= 1 and abs(second.end_ns - 199) <= 1


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_interrupt_ends_the_wait_and_cancels_pending_elements(elements, calls, executor):
    count, begun = calls.counter(), calls.folder

    def host(x):
        import os
        import threading

        count("begun")
        if x == 0:
            os.kill(parent, signal.SIGINT)
        threading.Event().wait(0.3)
        return x

    parent = os.getpid()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert begun and threading.current_thread() is threading.main_thread()
    try:
        with pytest.raises(KeyboardInterrupt):
            elements(host, executor=executor, chunksize=1)(np.arange(64, dtype=np.float32))
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls.counted()["begun"] < 20
    assert elements(lambda x: x, executor=executor)(X).tolist() == X.tolist()
    jax.effects_barrier()


def test_call_whose_process_is_killed_by_an_interrupt_is_recorded_as_interrupted(elements):
    def host(x):
        import os
        import threading

        os.kill(parent, signal.SIGINT)
        threading.Event().wait(60)

    parent = os.getpid()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with jaxcb.record() as r, pytest.raises(KeyboardInterrupt):
            elements(host, executor="processes:1")(np.arange(3, dtype=np.float32))
    finally:
        signal.signal(signal.SIGINT, before)
    assert [(call.element, call.error) for call in r.recording] == [(0, "KeyboardInterrupt")]


class Late(concurrent.futures.Executor):
    """Make the calls at once, in a thread, and return what came of them when told to."""

    def __init__(self):
        self.made, self.go = threading.Event(), threading.Event()

    def submit(self, *work):
        future = concurrent.futures.Future()
        threading.Thread(target=self.run, args=(future, *work), daemon=True).start()
        return future

    def run(self, future, function, *args):
        outcome = function(*args)
        self.made.set()
        assert self.go.wait(60)
        future.set_result(outcome)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_call_whose_result_comes_back_in_the_next_block_is_recorded_there(jitted):
    late = Late()
    f = jaxcb.pure(lambda x: x, result="x", executor=late)
    program = jax.jit(jax.vmap(f)) if jitted else jax.vmap(f)
    with jaxcb.record() as first:
        thread = threading.Thread(target=lambda: jax.block_until_ready(program(X[:3])))
        thread.start()
        assert late.made.wait(60)
    with jaxcb.record() as second:
        late.go.set()
        thread.join()
    assert (len(first.recording), len(second.recording)) == (0, 3)
