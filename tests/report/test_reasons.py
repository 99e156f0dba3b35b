"""Every reason and every note has a text; files store facts, not texts."""

import dataclasses
import json
import re

import pytest

from jupyter_jaxcb.report.summary import _reasons, note_words
from tests.interface import (
    JaxUse,
    Note,
    NoteKind,
    Outcome,
    Program,
    Reason,
    Recording,
    Site,
    Status,
    advice_words,
    causes_of,
    load,
)

SITE = Site("pure", "bessel", "model.py", 4, 0, cell=False, source="bessel(x)")
USE = JaxUse("jax.numpy.max", "model.py", 9)
NOTES = {kind: Note(kind) for kind in NoteKind} | {
    NoteKind.UNBATCHED: Note(NoteKind.UNBATCHED, (3, 4)),
    NoteKind.USES_JAX: Note(NoteKind.USES_JAX, use=USE),
    NoteKind.USES_JAX_AND_CAN_BLOCK: Note(NoteKind.USES_JAX_AND_CAN_BLOCK, use=USE),
}
FULL = {  # every fact that a reason can use, and every note
    "instructions": 1,
    "call_paths": 3,
    "unrolled": True,
    "detail": "ValueError: no luck",
    "notes": tuple(NOTES.values()),
}


def outcome(reason, flavor="pure", **facts):
    """Return an outcome; without `facts`, it is as a file from another program may have it."""
    site, program = dataclasses.replace(SITE, flavor=flavor), Program("jit_f", "cpu", 1)
    return Outcome(site, program, Status.UNUSED, written=1, compiled=0, reason=reason, **facts)


def test_every_reason_and_every_note_has_a_text():
    assert set(_reasons.REASONS) == set(Reason)
    assert list(_reasons.NOTES) == list(NoteKind)
    for words in map(note_words, NOTES.values()):
        assert words and "{" not in words and "None" not in words


@pytest.mark.parametrize("flavor", ["pure", "io", "debug", "buffer", "jax pure", "jax buffer"])
@pytest.mark.parametrize("reason", Reason)
def test_reason_and_advice_are_complete_for_every_flavor(reason, flavor):
    for facts in ({}, FULL):
        causes = causes_of(outcome(reason, flavor, **facts))
        reasons, advice = _reasons.reason_words(causes), advice_words(causes)
        assert reasons and "{" not in reasons + advice
        expected = reason in (Reason.NOT_NEEDED, Reason.OTHER_PLATFORM)
        assert bool(advice) is not expected


@pytest.mark.parametrize("reason", [None, *Reason], ids=str)
def test_file_has_every_reason_and_every_note_and_no_sentence(reason, tmp_path):
    """Two words in a row count as a sentence; the message of an exception is none of ours."""
    recording = Recording(outcomes=(outcome(reason, **FULL),))
    for suffix in (".json", ".jaxcb"):
        recording.save(tmp_path / f"a{suffix}")
        assert load(tmp_path / f"a{suffix}").outcomes == recording.outcomes
    (written,) = json.loads(recording.to_json())["outcomes"]
    del written["detail"]
    assert written.get("reason") == reason
    assert [kind for kind, *_ in written["notes"]] == list(NoteKind)
    assert re.findall(r"[A-Za-z]+ [A-Za-z]+", json.dumps(written)) == []
