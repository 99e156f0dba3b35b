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


def old_words(text):
    return sorted({word.lower() for word in re.findall(r"[A-Za-z]+", text)} & OLD.keys())


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_document_uses_no_old_word(path):
    assert old_words(path.read_text(encoding="utf-8")) == []


def test_old_word_is_found():
    assert old_words("Its Fate; translane") == ["fate"]
