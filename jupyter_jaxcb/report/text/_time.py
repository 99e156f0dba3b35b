"""Say how long host functions took, of how long a recording's code took, and what the rest was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...recording import Recording
from ..summary import SiteSummary, is_late, time_words

_LARGE_NS = 500_000_000  # besides host functions, if it is most of the time


def host_time(recording: Recording, sites: Sequence[SiteSummary]) -> str:
    """Return ``36 µs of 5.3 ms``: the time in host functions, and that of the recorded code.

    Args:
        recording: a recording.
        sites: its call sites.

    Returns:
        Only the former if the latter is unknown, or said by a profile; empty if nothing was called.
    """
    if not any(site.calls for site in sites):
        return ""
    host_ns, threads = _host_ns(sites), len(np.unique(recording.calls["thread"]))
    words = time_words(host_ns) + f" summed over {threads} threads" * (threads > 1)
    if recording.profile is not None or not recording.wall_ns:
        return words
    whole = time_words(recording.wall_ns)
    if is_late(recording):
        return f"{words}; the code ended after {whole}"
    if threads > 1:
        return f"{words} in {whole}"
    return words if host_ns > recording.wall_ns else f"{words} of {whole}"


def other_time(recording: Recording, sites: Sequence[SiteSummary]) -> str:
    """Say where the code's time went if host functions took little of it; empty otherwise."""
    host_ns, wall_ns = _host_ns(sites), recording.wall_ns
    outside_ns = wall_ns - host_ns
    if outside_ns < _LARGE_NS or 2 * outside_ns <= wall_ns:
        return ""
    if recording.profile is not None or is_late(recording):
        return ""
    compiled_ns = sum(one.lower_ns + one.compile_ns for one in recording.compilations)
    words = [f"host functions took {time_words(host_ns)}"]
    if compiled_ns and compiled_ns < outside_ns:
        words.append(f"compiling their programs {time_words(compiled_ns)}")
        outside_ns -= compiled_ns
    rest = f"and other code {time_words(outside_ns)} (Python, imports, JAX and XLA)"
    return f"Of {time_words(wall_ns)}, {', '.join([*words, rest])}"


def _host_ns(sites: Sequence[SiteSummary]) -> int:
    return sum(site.host_ns for site in sites)
