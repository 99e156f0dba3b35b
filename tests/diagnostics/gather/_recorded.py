"""Recordings as one process makes them, of one line."""

import numpy as np

from jupyter_jaxcb.recording import (
    Aval,
    Compilation,
    Fate,
    LoweredSite,
    Outcome,
    Program,
    Reason,
    Recorder,
    Site,
)

HERE = Site("pure", "bessel", "/home/me/model.py", 3, 4, cell=False, source="bessel(x)")
THERE = Site("io", "log", "/home/me/model.py", 9, 0, cell=False, source="log(x)")
X = Aval((), "float32")


def recorded(times, *, site=HERE, lanes=0, error=None, fate=Fate.LIVE, cells=(), environment=None):
    """A recording of one program, with a host call for each of `times`."""
    recorder = Recorder()
    program = Program("jit_f", "cpu", 1)
    fact = LoweredSite(site, program, 0, (X,), (X,))
    recorder.bound(site)
    recorder.lowered(fact)
    reason = None if fate is Fate.LIVE else Reason.EMPTY_LOOP
    recorder.compiled(Outcome(site, program, fate, written=1, compiled=1, reason=reason))
    recorder.took(Compilation(program, 1, (X,), 10, 20, code=1, end_ns=1_000))
    recorder.counts(program)
    for start, end in times:
        recorder.ran(program)
        crossing = recorder.called(fact, 1, start, end, error)
        recorder.values.take(fact, crossing, -1, [np.float32(start)], [np.float32(end)])
    if lanes:
        recorder.called_lanes(fact, 1, np.arange(lanes), list(range(100, 101 + lanes)))
    recorder.values.not_finite(fact, 1, 0)
    return recorder.freeze(cells=cells, environment=environment or {"jax": "0.0"})
