"""Count host calls in tests: the fixture ``host_calls``."""

from __future__ import annotations

import contextlib
from typing import Any

from .diagnostics import Listening, drain, environment, is_off
from .recording import Recorder, Recording
from .report import call_words, outcome_to_text, summarize, to_text


class Count(int):
    """A number of host calls; a failing assertion shows where they came from.

    Attributes:
        explained: the lines that a failing assertion shows.
    """

    explained: tuple[str, ...] = ()


class FunctionCalls:
    """The host calls of one host function so far.

    Attributes:
        name: name of the function.
        recording: the recording so far, of all functions.
    """

    def __init__(self, name: str, recording: Recording) -> None:
        self.name = name
        self.recording = recording
        self._sites = [one for one in summarize(recording) if one.site.function == name]

    @property
    def calls(self) -> Count:
        """How often it was called."""
        return self._count(sum(one.calls for one in self._sites))

    @property
    def crossings(self) -> Count:
        """The number of crossings; a looped vmap is one crossing for all batch elements."""
        return self._count(sum(one.crossings for one in self._sites))

    @property
    def elided(self) -> Count:
        """The number of its calls in compiled programs that were elided."""
        return self._count(sum(one.elided or 0 for one in self._sites))

    def __repr__(self) -> str:
        return f"<{call_words(self.calls)} of {self.name}>"

    def _count(self, number: int) -> Count:
        count = Count(number)
        count.explained = tuple((to_text(self.recording, times=False) or _NONE).splitlines())
        return count


_NONE = "no host calls"


class Elided(tuple[str, ...]):
    """The elided sites, as text: ``bessel, line 3: unused, nothing uses its result ...``."""

    def __repr__(self) -> str:
        return f"<elided: {'; '.join(self)}>" if self else "<nothing elided>"


class HostCalls:
    """All host calls since the test began, by host function.

    ``host_calls["bessel"]`` has the counts ``.calls``, ``.crossings`` and ``.elided``, and
    ``"bessel" in host_calls`` is whether it was called. `elided` lists all elided sites, and
    `recording` is the whole recording. Each of these first waits for dispatched programs.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._mark = self._recorder.mark()

    @property
    def recording(self) -> Recording:
        """The recording so far."""
        drain()
        return self._recorder.freeze(self._mark, environment=environment())

    @property
    def elided(self) -> Elided:
        """The elided sites: unused, optimized away, deduplicated, hoisted, fewer; may be empty."""
        recording = self.recording
        return Elided(outcome_to_text(one, recording.where(one.site)) for one in recording.elisions)

    def __getitem__(self, function: str) -> FunctionCalls:
        return FunctionCalls(function, self.recording)

    def __contains__(self, function: object) -> bool:
        return any(site.function == function for site in self._called())

    def __len__(self) -> int:
        recording = self.recording
        return len(recording) + recording.overflow

    def __bool__(self) -> bool:
        """Whether there was any host call."""
        return len(self) > 0

    def __repr__(self) -> str:
        return repr(self.recording)

    def _called(self) -> set[Any]:
        recording = self.recording
        numbers = {*recording.calls["lowered"].tolist(), *(n.lowered for n in recording.not_kept)}
        return {recording.lowered[number].site for number in numbers}


def host_calls() -> contextlib.AbstractContextManager[HostCalls]:
    """Count host calls in a ``with`` block, as the pytest fixture of this name does for a test.

    Returns:
        A context manager that yields a `HostCalls`.

    Raises:
        RuntimeError: ``JUPYTER_JAXCB=off`` turns recording off, so nothing can be counted.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> from jupyter_jaxcb.testing import host_calls
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with host_calls() as counted:
    ...     y = double(np.float32(3))
    ...     assert counted["double"].calls == 1
    """
    if is_off():
        raise RuntimeError(
            "cannot count host calls: JUPYTER_JAXCB=off turns recording off. Unset it and run the "
            "tests again."
        )
    return _Counting()


class _Counting(Listening):
    def begin(self) -> Any:
        return HostCalls(super().begin())
