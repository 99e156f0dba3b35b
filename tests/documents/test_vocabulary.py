"""The documents use the words of the glossary."""

import re

import pytest

from .test_claims import DOCUMENTS, REPOSITORY

# Words used in earlier versions, and their replacements in the glossary.
OLD = {
    "fate": "status",
    "lane": "batch element",
    "lent": "borrowed",
    "remedy": "advice",
    "uncalled": "not run",
    "untaken": "not reached",
}
# Phrases that a native engineer would not write, and what to write.
ODD = {
    "is refused": "X raises ValueError when ...",
    "are refused": "X raises ValueError when ...",
    "nobody waits": "name the user or the program that does not wait",
    "function of C": "C function",
    "functions of C": "C functions",
    "what came of": "name the result",
    "are looked at": "name who examines it",
}


def odd_phrases(text):
    words = " ".join(text.split())
    return [phrase for phrase in ODD if re.search(rf"\b{phrase}\b(?![+])", words)]


def old_words(text):
    return sorted({word.lower() for word in re.findall(r"[A-Za-z]+", text)} & OLD.keys())


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_document_uses_no_old_word(path):
    assert old_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_document_uses_no_odd_phrase(path):
    assert odd_phrases(path.read_text(encoding="utf-8")) == []


def test_odd_phrase_is_found():
    assert odd_phrases("the call\nis refused; functions of C++") == ["is refused"]


def test_old_word_is_found():
    assert old_words("Its Fate; translane") == ["fate"]
