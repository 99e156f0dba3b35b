"""Divide the time of a recording's code into host functions, compilation and the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...recording import Recording
from ..summary import SiteSummary, is_late, time_words


def time_split(recording: Recording, sites: Sequence[SiteSummary]) -> str:
    """Return ``5.3 ms: host functions 36 µs, compilation 3.1 ms, rest 2.2 ms``.

    Compilation is what JAX traces, lowers and compiles before programs run; the rest is the user's
    Python, compiled programs and JAX.

    Args:
        recording: a recording.
        sites: its call sites.

    Returns:
        Only the time in host functions if that of the code is unknown, or said by a profile, or if
        they are no parts of it, as they overlap. Empty if nothing was called or compiled.
    """
    whole_ns, compiled_ns = recording.wall_ns, recording.compiled_ns
    host_ns, threads = (
        sum(site.host_ns for site in sites),
        len(np.unique(recording.calls["thread"])),
    )
    called = any(site.calls for site in sites)
    words = f"host functions {time_words(host_ns)}" if called else ""
    words += f" summed over {threads} threads" * (threads > 1)
    if recording.profile is not None or not whole_ns or not (called or compiled_ns):
        return words
    whole = time_words(whole_ns)
    if is_late(recording):
        return f"{words}, also after the code, which took {whole}"
    rest_ns = whole_ns - host_ns - compiled_ns
    if threads > 1 or rest_ns < 0:
        return f"{words} in {whole}" if threads > 1 else words
    parts = [words, f"compilation {time_words(compiled_ns)}" if compiled_ns else ""]
    return f"{whole}: {', '.join([*filter(None, parts), f'rest {time_words(rest_ns)}'])}"
