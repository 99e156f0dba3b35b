"""A small timeline of host calls as SVG, for pages without scripts."""

from __future__ import annotations

import numpy as np

from ...recording import Html, Recording, element, html
from ..summary import call_words
from ._words import time_words

MAX_TRACKS = 8  # threads that are drawn
_WIDTH = 720  # pixels; calls within one pixel are one bar
_TRACK, _BAR, _TOP = 30, 10, 4  # heights in pixels: of a thread, of its bars, and above them


def timeline(recording: Recording) -> Html:
    """Return a track for each thread, from the first call to the end of the last; empty if none.

    Failed calls have a mark below their bar. The colour is that of the text around it.
    """
    calls = recording.calls
    if not len(calls):
        return html()
    base, end = int(calls["start_ns"].min()), int(calls["end_ns"].max())
    threads, counts = np.unique(calls["thread"], return_counts=True)
    drawn = threads[:MAX_TRACKS].tolist()
    tracks = [
        _track(recording, thread, place * _TRACK, base, max(end - base, 1))
        for place, thread in enumerate(drawn)
    ]
    words = f"{call_words(len(calls))} in {time_words(end - base)}, by thread"
    more = f" (the first {MAX_TRACKS} of {len(counts)})" if len(counts) > MAX_TRACKS else ""
    height = _TRACK * len(drawn)
    size = {"width": _WIDTH, "height": height, "viewBox": f"0 0 {_WIDTH} {height}"}
    return html(
        element("p", words, more),
        element("svg", *tracks, role="img", aria_label=words, **size, fill="currentColor"),
    )


def _track(recording: Recording, thread: int, y: int, base: int, length: int) -> Html:
    calls = recording.calls[recording.calls["thread"] == thread]
    begins = (calls["start_ns"] - base) * _WIDTH // length
    ends = -((base - calls["end_ns"]) * _WIDTH // length)  # rounded up
    bars = _bars(begins, ends, y + _TOP, _BAR)
    failed = calls["error"] != 0
    marks = _bars(begins[failed], ends[failed], y + _TOP + _BAR + 1, 2)
    return html(
        element("path", d=bars),
        element("path", fill="#d1242f", d=marks),
        element("text", recording.threads[thread], x=0, y=y + _TRACK - 4, font_size=11),
    )


def _bars(begins: np.ndarray, ends: np.ndarray, y: int, height: int) -> str:
    """Return an SVG path of the pixels that calls cover, as one rectangle per run of pixels."""
    change = np.zeros(_WIDTH + 2, np.int64)
    begins = np.clip(begins, 0, _WIDTH - 1)
    np.add.at(change, begins, 1)
    np.add.at(change, np.clip(np.maximum(ends, begins + 1), 1, _WIDTH), -1)
    covered = np.concatenate([[False], np.cumsum(change) > 0])
    edges = np.flatnonzero(covered[1:] != covered[:-1]).tolist()
    return "".join(
        f"M{left} {y}h{right - left}v{height}h{left - right}z"
        for left, right in zip(edges[::2], edges[1::2], strict=True)
    )
