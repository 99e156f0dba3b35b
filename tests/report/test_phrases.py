"""The front end uses the phrases of the reports.

JAXCB_WRITE_GOLDEN=1 rewrites the front end's copy after an intended change.
"""

import itertools
import json
import os
import re
import string
from pathlib import Path

from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report.text import _phrases

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
SOURCES = Path(__file__).parents[2] / "labextension" / "src"
FILE = SOURCES / "view" / "data" / "phrases.json"


def test_front_end_has_the_phrases_of_the_reports():
    table = json.loads(json.dumps(_phrases.TABLE))
    if os.environ.get("JAXCB_WRITE_GOLDEN") == "1":
        FILE.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(FILE.read_text()) == table


def test_every_consequence_has_a_tone_a_sign_and_words():
    more = {
        "raised",
        "stopped",
        "not_finite",
        "running",
        "not_needed",
        "impure_deduplicated",
        "impure_hoisted",
    }
    assert set(_phrases.TONES) == {*more, *Status}
    assert list(_phrases.TONES) == list(_phrases.SIGNS)
    assert set(_phrases.TONES) == set(_phrases.WORDS)


def test_meanings_are_those_of_the_glossary():
    lines = GLOSSARY.read_text().splitlines()
    for word, meaning in _phrases.MEANINGS.items():
        own = itertools.takewhile(str.strip, lines[lines.index(word) + 1 :])
        plain = re.sub(r"\{term\}`([^`<]*)[^`]*`", r"\1", " ".join(map(str.strip, own)))
        assert plain.startswith(meaning), word


def test_front_end_uses_every_phrase_with_its_arguments():
    """Each ``say(phrases.name, {...})`` has a key for every name in braces in the phrase."""
    code = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.ts")))
    for name, phrase in _phrases.TABLE.items():
        assert f"phrases.{name}" in code, name
        placeholders = [
            placeholder
            for _, placeholder, *_ in string.Formatter().parse(str(phrase))
            if placeholder
        ]
        if isinstance(phrase, str) and placeholders:
            arguments = code.partition(f"say(phrases.{name}, {{")[2].partition("})")[0]
            assert all(placeholder in arguments for placeholder in placeholders), name
