"""The front end uses the phrases of the reports.

JAXCB_WRITE_GOLDEN=1 rewrites the copy of the front end after an intended change.
"""

import json
import os
import string
from pathlib import Path

from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report.text import _phrases

SOURCES = Path(__file__).parents[2] / "labextension" / "src"
FILE = SOURCES / "view" / "data" / "phrases.json"


def test_front_end_has_the_phrases_of_the_reports():
    table = json.loads(json.dumps(_phrases.TABLE))
    if os.environ.get("JAXCB_WRITE_GOLDEN") == "1":
        FILE.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(FILE.read_text()) == table


def test_every_status_has_a_sign():
    assert list(_phrases.SIGNS) == list(Status)


def test_front_end_uses_every_phrase_with_its_arguments():
    """The object beside each phrase has a key for each name in braces."""
    code = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.ts")))
    for name, phrase in _phrases.TABLE.items():
        assert f"phrases.{name}" in code, name
        words = [word for _, word, *_ in string.Formatter().parse(str(phrase)) if word]
        if isinstance(phrase, str) and words:
            arguments = code.partition(f"say(phrases.{name}, {{")[2].partition("})")[0]
            assert all(word in arguments for word in words), name
