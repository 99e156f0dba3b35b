import base64
import os
import zlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax
import numpy as np
import pytest

from jupyter_jaxcb.recording import active

# The same examples on every machine; `make fuzz` draws others.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
if os.environ.get("JAXCB_FUZZ_RANDOM") != "1":
    hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _no_recorder_left_behind():
    assert active() is None
    yield
    jax.effects_barrier()
    assert active() is None


class Compiles:
    """Counts programs compiled while it is entered."""

    def __enter__(self):
        self.count, self.entered = 0, True
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self

    def hear(self, event, duration, **facts):
        # JAX 0.8 has no public way to take a listener away: this one just stops counting.
        self.count += self.entered and event.endswith("backend_compile_duration")

    def __exit__(self, *exc):
        self.entered = False


@pytest.fixture
def compiles():
    """``with compiles() as counted:``, then ``counted.count`` programs were compiled."""
    return Compiles


@pytest.fixture(scope="session")
def unpacked():
    """Rows (start, duration, lane, way, thread, error) of call columns, plain or as saved."""

    def unpack(columns):
        rows, unit = columns["rows"], columns["unit_ns"]
        raw = columns.get("raw")
        if raw is None:
            raw = zlib.decompress(base64.b64decode(columns["zlib"]))
        found, offset = [], 0
        for kind in ("<u4", "<u4", "<i4", "<u2", "<u2", "<u2"):
            width = np.dtype(kind).itemsize
            column = np.frombuffer(raw, np.uint8, rows * width, offset)
            if "zlib" in columns:
                column = np.ascontiguousarray(column.reshape(width, rows).T)
            found.append(column.view(kind).reshape(rows).tolist())
            offset += rows * width
        assert offset == len(raw)
        starts = (np.cumsum(np.array(found[0], np.int64)) * unit).tolist()
        durations = [duration * unit for duration in found[1]]
        return list(zip(starts, durations, *found[2:], strict=True))

    return unpack
