"""The small timeline in pages for readers without scripts."""

import re

from jupyter_jaxcb.recording import LoweredSite, Recorder, Recording, record_call
from jupyter_jaxcb.report.text import _timeline
from jupyter_jaxcb.report.text._timeline import timeline

from ._several import BESSEL


def drawn(*calls):
    """Return the timeline of calls: start, end, error."""
    recorder = Recorder(clock=lambda: 0)
    for begin, end, error in calls:
        record_call(recorder, LoweredSite(BESSEL, None, -1, (), ()), 1, begin, end, error)
    return timeline(recorder.freeze())


def bars(svg):
    """Return the left and right end of each bar of each path, in pixels."""
    return [
        [(int(x), int(x) + int(width)) for x, width in re.findall(r"M(\d+) \d+h(\d+)", path)]
        for path in re.findall(r' d="(.*?)"', svg)
    ]


def test_calls_are_where_they_ran_and_failures_are_marked():
    all_calls, failed = bars(drawn((1000, 1100, None), (1300, 1720, "no luck")))
    assert all_calls == [(0, 100), (300, 720)]
    assert failed == [(300, 720)]


def test_short_calls_are_one_pixel_and_overlapping_calls_one_bar():
    short, _ = bars(drawn((0, 1, None), (7_200, 7_200, None), (5, 72_000, None)))
    assert short == [(0, 720)]
    short, _ = bars(drawn((0, 1, None), (36_000, 36_000, None), (72_000, 72_000, None)))
    assert short == [(0, 1), (360, 361), (719, 720)]


def test_recording_without_calls_has_no_timeline():
    assert timeline(Recording()) == ""


def test_calls_without_duration_are_drawn():
    assert bars(drawn((5, 5, None)))[0] == [(0, 1)]


def test_number_of_threads_is_limited(monkeypatch):
    monkeypatch.setattr(_timeline, "MAX_TRACKS", 0)
    assert "by thread (the first 0 of 1)" in drawn((0, 1, None))
