"""The words that the front end writes are those of the reports.

JAXCB_WRITE_GOLDEN=1 writes its table anew, after a change that is meant.
"""

import json
import os
import string
from pathlib import Path

from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report.text import _phrases

SOURCES = Path(__file__).parents[2] / "labextension" / "src"
FILE = SOURCES / "view" / "data" / "phrases.json"


def test_table_of_the_front_end_is_that_of_the_reports():
    table = json.loads(json.dumps(_phrases.TABLE))
    if os.environ.get("JAXCB_WRITE_GOLDEN") == "1":
        FILE.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(FILE.read_text()) == table


def test_every_status_has_a_sign():
    assert list(_phrases.SIGNS) == list(Status)


def test_every_phrase_is_said_by_the_front_end_with_its_words():
    """An object with a key for each word in braces stands beside the phrase."""
    code = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.ts")))
    for name, phrase in _phrases.TABLE.items():
        assert f"phrases.{name}" in code, name
        words = [word for _, word, *_ in string.Formatter().parse(str(phrase)) if word]
        if isinstance(phrase, str) and words:
            said = code.partition(f"say(phrases.{name}, {{")[2].partition("})")[0]
            assert all(word in said for word in words), name
