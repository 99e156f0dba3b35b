"""Mistakes to plant in the stack, in recordings and in reports."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recorder, Recording, Status
from jupyter_jaxcb.report.summary import _summary
from jupyter_jaxcb.report.summary._counts import Counts
from jupyter_jaxcb.stack.dispatch import _elements
from jupyter_jaxcb.stack.elision import _programs

Plant = Callable[[Any], None]  # takes pytest's monkeypatch
MISTAKES: dict[str, Plant] = {}


def mistake(plant: Plant) -> Plant:
    MISTAKES[plant.__name__.replace("_", " ")] = plant
    return plant


def _every(number: int) -> Callable[[], bool]:
    """Return a function that returns True at every `number`-th call."""
    count = itertools.count(1)
    return lambda: next(count) % number == 0


# recordings


@mistake
def a_call_is_not_recorded(patch):
    called, now = Recorder.called, _every(5)
    patch.setattr(Recorder, "called", lambda s, *a, **k: 0 if now() else called(s, *a, **k))


@mistake
def a_call_is_recorded_twice(patch):
    called, now = Recorder.called, _every(5)

    def twice(self, *args, **kwargs):
        if now():
            called(self, *args, **kwargs)
        return called(self, *args, **kwargs)

    patch.setattr(Recorder, "called", twice)


@mistake
def a_batch_element_is_not_recorded(patch):
    elements = Recorder.called_elements

    def fewer(self, lowered, version, numbers, stamps, *args, **kwargs):
        return elements(self, lowered, version, numbers, stamps[:-1], *args, **kwargs)

    patch.setattr(Recorder, "called_elements", fewer)


@mistake
def calls_are_recorded_at_another_site(patch):
    called, last = Recorder.called, []

    def misplaced(self, lowered, *args, **kwargs):
        last.append(lowered)
        return called(self, last[-2] if len(last) > 1 else lowered, *args, **kwargs)

    patch.setattr(Recorder, "called", misplaced)


@mistake
def an_outcome_is_lost(patch):
    compiled, now = Recorder.compiled, _every(3)
    patch.setattr(Recorder, "compiled", lambda s, o: None if now() else compiled(s, o))


@mistake
def a_file_loses_the_last_call(patch):
    read = Recording.from_json

    def shorter(text):
        recording = read(text)
        return dataclasses.replace(recording, calls=recording.calls[:-1])

    patch.setattr(Recording, "from_json", staticmethod(shorter))


# reports


@mistake
def every_site_with_several_call_paths_is_reported_deduplicated(patch):
    outcome = _programs.outcome

    def deduplicated(*args):
        found = outcome(*args)
        return (
            dataclasses.replace(found, status=Status.DEDUPLICATED)
            if found.traced_paths > 1
            else found
        )

    patch.setattr(_programs, "outcome", deduplicated)


@mistake
def one_compiled_call_too_many_is_reported(patch):
    outcome = _programs.outcome

    def more(*args):
        found = outcome(*args)
        return dataclasses.replace(found, compiled=found.compiled + 1) if found.compiled else found

    patch.setattr(_programs, "outcome", more)


@mistake
def a_run_too_many_is_counted(patch):
    runs = Counts.runs
    patch.setattr(Counts, "runs", lambda self, program: (runs(self, program) or 0) + 1)


@mistake
def explain_predicts_that_all_are_kept(patch):
    patch.setattr(_summary, "_status_ahead", lambda *args: (Status.KEPT, ()))


@mistake
def host_error_always_returns_none(patch):
    patch.setattr(jaxcb, "host_error", lambda error: None)


# the stack


def _elements_visited(patch, visit):
    elements = _elements.ElementSchedule.elements
    patch.setattr(
        _elements.ElementSchedule,
        "elements",
        lambda self, ops: iter(visit(list(elements(self, ops)))),
    )


@mistake
def a_batch_element_is_skipped(patch):
    _elements_visited(patch, lambda calls: calls[:-1])


@mistake
def batch_elements_are_visited_in_reverse(patch):
    _elements_visited(patch, lambda calls: calls[::-1])


@mistake
def results_of_batch_elements_are_reversed(patch):
    by_element = _elements.ElementSchedule.by_element
    patch.setattr(
        _elements.ElementSchedule, "by_element", lambda self, called: by_element(self, called[::-1])
    )
