"""A recording as IPython displays it."""

from __future__ import annotations

from typing import Any

from ..recording import Recording
from ..report import to_mimebundle, to_text

_NOTHING = "no host calls"


class HostTrace:
    """Displays a recording: a line, and a table of sites."""

    def __init__(self, recording: Recording, *, times: bool) -> None:
        self.recording = recording
        self._times = times

    def __bool__(self) -> bool:
        """Whether there is anything to show: a call, a compiled site or an elided one."""
        return bool(to_text(self.recording, times=False))

    def __repr__(self) -> str:
        return to_text(self.recording, times=self._times) or _NOTHING

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data (the same for equal programs) and metadata (times, threads) of the display."""
        data, metadata = to_mimebundle(self.recording, times=self._times)
        if not self:
            data = {"text/plain": _NOTHING}
        return data, metadata

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return self.bundle()
