"""Host calls in tests: what the fixture ``host_calls`` is."""

from __future__ import annotations

import contextlib
from typing import Any

from .diagnostics import Listening, drain, environment, is_off
from .recording import Recorder, Recording
from .report import call_words, outcome_to_text, summarize, to_text


class Count(int):
    """A number of host calls, which says in a failing assertion where they came from.

    Attributes:
        explained: lines of text.
    """

    explained: tuple[str, ...] = ()


class FunctionCalls:
    """The host calls of one host function so far.

    Attributes:
        name: of the function.
        recording: all of it, of every function.
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
        """How often XLA crossed to it; once for all batch elements of a vmap that loops."""
        return self._count(sum(one.crossings for one in self._sites))

    @property
    def elided(self) -> Count:
        """How many of its calls are missing, as far as it is known how many there would be."""
        return self._count(sum(one.elided or 0 for one in self._sites))

    def __repr__(self) -> str:
        return f"<{call_words(self.calls)} of {self.name}>"

    def _count(self, number: int) -> Count:
        count = Count(number)
        count.explained = tuple((to_text(self.recording, times=False) or _NONE).splitlines())
        return count


_NONE = "no host calls"


class Elided(tuple[str, ...]):
    """The sites whose calls are missing, in words: ``bessel, line 3: unused, its result ...``."""

    def __repr__(self) -> str:
        return f"<elided: {'; '.join(self)}>" if self else "<nothing elided>"


class HostCalls:
    """Every host call since the test began, by host function.

    ``host_calls["bessel"].calls``, ``.crossings`` and ``.elided`` count; `elided` has all sites
    whose calls are missing; ``"bessel" in host_calls`` says whether it was called; `recording` has
    all there is. Programs that were dispatched are waited for.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._mark = self._recorder.mark()

    @property
    def recording(self) -> Recording:
        """What happened so far."""
        drain()
        return self._recorder.freeze(self._mark, environment=environment())

    @property
    def elided(self) -> Elided:
        """The sites whose calls are missing, wholly or in part; empty if none are."""
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
    """Counts host calls in a ``with`` block; the fixture of this name is this.

    Raises:
        RuntimeError: ``JUPYTER_JAXCB=off``: nothing could be counted.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> from jupyter_jaxcb.testing import host_calls
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with host_calls() as counted:
    ...     y = double(np.float32(3))
    ...     assert counted["<lambda>"].calls == 1
    """
    if is_off():
        raise RuntimeError(
            "JUPYTER_JAXCB=off: host calls are not recorded, so none can be counted. Run without "
            "it."
        )
    return _Counting()


class _Counting(Listening):
    def begin(self) -> Any:
        return HostCalls(super().begin())
