"""Build recordings of one process and one call site."""

import threading

import numpy as np

from jupyter_jaxcb.recording import (
    Aval,
    Compilation,
    LoweredSite,
    Outcome,
    Program,
    Reason,
    Recorder,
    Site,
    Status,
    record_call,
    record_elements,
)

HERE = Site("pure", "bessel", "/home/me/model.py", 3, 4, cell=False, source="bessel(x)")
THERE = Site("io", "log", "/home/me/model.py", 9, 0, cell=False, source="log(x)")
X = Aval((), "float32")


def recorded(
    times, *, site=HERE, elements=0, error=None, status=Status.KEPT, cells=(), environment=None
):
    """Return a recording of one program, whose calls come from two threads in turn.

    Args:
        times: start and end of each host call, in nanoseconds.
        site: the call site.
        elements: the number of batch elements of one more, looped crossing.
        error: the error of every host call.
        status: the status of the call site.
        cells: the files of notebook cells.
        environment: the environment of the recording.
    """
    recorder = Recorder()
    program = Program("jit_f", "cpu", 1)
    fact = LoweredSite(site, program, 0, (X,), (X,))
    recorder.bound(site)
    recorder.lowered(fact)
    reason = None if status is Status.KEPT else Reason.EMPTY_LOOP
    recorder.add_outcome(Outcome(site, program, status, written=1, compiled=1, reason=reason))
    recorder.add_compilation(Compilation(program, 1, (X,), 10, 20, code=1, end_ns=1_000))
    recorder.start_counting_runs(program)

    def call(start, end):
        recorder.ran(program)
        crossing = record_call(recorder, fact, 1, start, end, error)
        recorder.values.take(fact, crossing, -1, [np.float32(start)], [np.float32(end)])

    for number, time in enumerate(times):
        if number % 2:
            other = threading.Thread(target=call, args=time, name="other")
            other.start()
            other.join()
        else:
            call(*time)
    if elements:
        record_elements(recorder, fact, 1, np.arange(elements), list(range(100, 101 + elements)))
    recorder.values.not_finite(fact, 1, 0)
    for call in list(recorder.freeze())[-1:]:
        recorder.values.mark(fact, call.crossing, call.element, False)
    return recorder.freeze(cells=cells, environment=environment or {"jax": "0.0"})
