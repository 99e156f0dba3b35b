"""Every reason and every note has a text; files store facts, not texts."""

import dataclasses
import json
import re
import string
from pathlib import Path

import pytest

from jupyter_jaxcb.recording import (
    JaxUse,
    Note,
    NoteKind,
    Outcome,
    Program,
    Reason,
    Recording,
    RecordingFileError,
    Site,
    Status,
    load,
)
from jupyter_jaxcb.report import advice_words, causes_of, note_words, reason_words
from jupyter_jaxcb.report.summary import _mask, _reasons

DATA = Path(__file__).parents[1] / "data"
SITE = Site("pure", "bessel", "model.py", 4, 0, cell=False, source="bessel(x)")
PROGRAM = Program("jit_f", "cpu", 1)
USE = JaxUse("jax.numpy.max", "model.py", 9)
NOTES = {
    NoteKind.UNBATCHED: Note(NoteKind.UNBATCHED, (3, 4)),
    NoteKind.USES_JAX: Note(NoteKind.USES_JAX, use=USE),
    NoteKind.USES_JAX_AND_CAN_BLOCK: Note(NoteKind.USES_JAX_AND_CAN_BLOCK, use=USE),
}


def outcome(reason, flavor="pure", **facts):
    site = dataclasses.replace(SITE, flavor=flavor)
    return Outcome(site, PROGRAM, Status.UNUSED, written=1, compiled=0, reason=reason, **facts)


def note(kind):
    return NOTES.get(kind, Note(kind))


def full(reason):
    """Return an outcome with every fact that a reason can use, and with every note."""
    return outcome(
        reason,
        instructions=1,
        call_paths=3,
        unrolled=True,
        unreadable="ValueError: no luck",
        notes=tuple(map(note, NoteKind)),
    )


RECORDINGS = [Recording(outcomes=(full(reason),)) for reason in (None, *Reason)]
each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=["kept", *map(str, Reason)])


def test_every_reason_and_every_note_has_a_text():
    assert list(_reasons.REASONS) == list(Reason)
    assert list(_reasons.NOTES) == list(NoteKind)


@pytest.mark.parametrize("flavor", ["pure", "io", "debug", "buffer", "jax pure", "jax buffer"])
@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("bare", [False, True])
def test_reason_and_advice_are_complete_for_every_flavor(reason, flavor, bare):
    """`bare` is an outcome without the facts: a file from another program may lack them."""
    given = outcome(reason, flavor) if bare else dataclasses.replace(full(reason), site=SITE)
    for words in (reason_words(causes_of(given)), advice_words(causes_of(given))):
        assert "{" not in words
    assert reason_words(causes_of(given))
    expected = reason in (Reason.NOT_NEEDED, Reason.OTHER_PLATFORM)
    assert bool(advice_words(causes_of(given))) is not expected


@pytest.mark.parametrize("flavor", ["io", "debug", "jax io", "jax debug"])
@pytest.mark.parametrize("reason", [Reason.DEAD_IN_TRACE])
def test_callback_with_side_effects_is_not_advised_to_become_an_io_callback(reason, flavor):
    words = advice_words(causes_of(outcome(reason, flavor)))
    assert "io" not in words.split() and "io_callback" not in words


@pytest.mark.parametrize(
    ("flavor", "function", "advised"),
    [
        ("pure", "simulate", "replace cond with simulate.where(predicate, ...)"),
        ("pure", "<lambda>", "replace cond with f.where(predicate, ...)"),
        ("jax pure", "simulate", "register the function, f = jaxcb.pure(...), and replace cond"),
    ],
)
def test_call_that_runs_in_every_branch_has_advice_to_type(flavor, function, advised):
    site = dataclasses.replace(SITE, flavor=flavor, function=function)
    words = _mask.words(site, ())[NoteKind.ALL_BRANCHES_RUN]
    assert f"; {advised}" in words


@pytest.mark.parametrize("kind", NoteKind)
def test_text_of_a_note_is_complete(kind):
    words = note_words(note(kind))
    assert words and "{" not in words and "None" not in words


def test_every_fact_is_used_by_some_reason():
    names = {
        name.partition(".")[0]
        for words in _reasons.REASONS.values()
        for text in words
        for _, name, *_ in string.Formatter().parse(text)
        if name
    }
    (cause,) = causes_of(full(Reason.HOISTED))
    assert names == set(_reasons._facts(cause))


def test_texts_contain_the_facts():
    words = reason_words(causes_of(full(Reason.DEDUPLICATED)))
    assert words.startswith("3 call paths (JAX unrolled the loop), 1 call kept: XLA removed ")
    assert reason_words(causes_of(full(Reason.UNREADABLE))).endswith(": ValueError: no luck")
    assert reason_words(causes_of(full(Reason.HOISTED))).endswith(": 0 calls per run instead of 1")
    assert note_words(NOTES[NoteKind.UNBATCHED]).endswith("serves 3 × 4 batch elements")
    assert "(jax.numpy.max, model.py:9)" in note_words(NOTES[NoteKind.USES_JAX])
    assert reason_words(causes_of(outcome(None))) == ""


@pytest.mark.parametrize(
    ("call_paths", "words"),
    [
        (2, "2 call paths, 1 call kept: JAX removed the other because its result is unused "),
        (3, "3 call paths, 1 call kept: JAX removed the others because their results are unused "),
    ],
)
def test_unused_call_paths_are_counted(call_paths, words):
    reason = outcome(Reason.PARTLY_UNUSED, instructions=1, call_paths=call_paths)
    assert reason_words(causes_of(reason)) == f"{words}(dead-code elimination)"


def test_outcome_is_printed_in_words():
    assert str(outcome(None)) == "bessel, model.py:4: unused"
    assert str(outcome(Reason.EMPTY_LOOP)) == (
        "bessel, model.py:4: unused, it is in a loop of length 0"
    )


@each_recording
@pytest.mark.parametrize("suffix", [".json", ".jaxcb"])
def test_every_reason_and_every_note_comes_back_from_a_file(recording, suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    recording.save(path)
    back = load(path)
    assert back.outcomes == recording.outcomes
    assert back.to_json() == recording.to_json()


@each_recording
def test_file_holds_no_sentence(recording):
    """Two words in a row count as a sentence; exception messages are ignored."""
    (written,) = json.loads(recording.to_json())["outcomes"]
    assert written["reason"] in (None, *Reason)
    del written["unreadable"]  # an exception message
    kinds = [kind for kind, *_ in written["notes"]]
    assert kinds == list(NoteKind)
    assert re.findall(r"[A-Za-z]+ [A-Za-z]+", json.dumps(written)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reason", "nothing uses its result"),
        ("reason", ""),
        ("reason", 3),
        ("reason", ["unused"]),
        ("notes", [7]),
        ("notes", [["a sentence"]]),
        ("notes", [["unbatched", ["3"]]]),
        ("notes", [["uses_jax", [], ["jax.numpy.max", "", "9"]]]),
        ("call_paths", "3"),
        ("unrolled", 1),
        ("unreadable", None),
        ("advice", "use it"),
    ],
)
def test_bad_facts_are_reported_with_their_key(name, value):
    data = json.loads(Recording(outcomes=(outcome(None),)).to_json())
    data["outcomes"][0][name] = value
    with pytest.raises(RecordingFileError, match=name):
        Recording.from_json(json.dumps(data))


@pytest.mark.parametrize("outcomes", [None, 3, "x", [None], [[]], [{}], {}])
def test_bad_outcomes_are_reported(outcomes):
    data = json.loads(Recording().to_json()) | {"outcomes": outcomes}
    with pytest.raises(RecordingFileError, match="outcomes"):
        Recording.from_json(json.dumps(data))
    del data["outcomes"]
    with pytest.raises(RecordingFileError, match="outcomes"):
        Recording.from_json(json.dumps(data))
