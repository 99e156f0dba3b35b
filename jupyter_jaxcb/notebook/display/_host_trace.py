"""`HostTrace`, the display of a recording in IPython."""

from __future__ import annotations

from typing import Any

from ...recording import Recording
from ...report import NO_CALLBACKS, Place, to_mimebundle, to_text


class HostTrace:
    """The display of a recording: a summary line and a table of sites.

    The arguments are those of `to_mimebundle`.

    Attributes:
        recording: what it shows.
        name: the id under which the kernel can send the recording; empty: it cannot.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        times: bool,
        values: bool = False,
        place: Place | None = None,
        name: str = "",
    ) -> None:
        self.recording = recording
        self._times = times
        self._values = values
        self._place = place
        self.name = name
        self._nothing = NO_CALLBACKS if recording.ahead else "no host calls"

    def __bool__(self) -> bool:
        """Whether there is anything to show: a call, a compiled or elided site, or a profile."""
        recording = self.recording
        return recording.profile is not None or bool(to_text(recording, times=False))

    def __repr__(self) -> str:
        return to_text(self.recording, times=self._times, values=self._values) or self._nothing

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return data (equal for equal programs) and metadata (times, threads) of the display."""
        data, metadata = to_mimebundle(
            self.recording,
            times=self._times,
            values=self._values,
            place=self._place,
            name=self.name,
        )
        if not self:
            data = {"text/plain": self._nothing}
        elif not data["text/plain"]:
            data["text/plain"] = repr(self)
        return data, metadata

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return self.bundle()


def widget_of(recording: Recording, *, values: bool, saved: tuple[dict, dict]) -> Any:
    """Return a widget that shows the whole `recording`, see `RecordingWidget`."""
    from ._widget import RecordingWidget  # imports anywidget, which few cells need

    return RecordingWidget(recording, values=values, saved=saved)
