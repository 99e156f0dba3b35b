"""Generate the table of reasons, for the page about calls that are missing."""

from __future__ import annotations

from pathlib import Path

from from_code import table, write

from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report.summary._reasons import REASONS


def write_statuses(folder: Path) -> None:
    """Write the page to `folder`."""
    folder.mkdir(exist_ok=True)
    write(folder / "statuses.md", statuses_page())


def statuses_page() -> str:
    """Return the table: each reason with the statuses that it explains, its words and advice."""
    rows = []
    for reason, (statuses, words, advice) in REASONS.items():
        every = "any" if statuses == tuple(Status) else ", ".join(one.words for one in statuses)
        rows.append((every, f"`{reason}`", _with_dots(words), _with_dots(advice)))
    return table(("status", "reason", "in words", "advice"), rows)


def _with_dots(words: str) -> str:
    """Return words with dots where a report has a fact of its own."""
    before, brace, rest = words.partition("{")
    return f"{before}…{_with_dots(rest.partition('}')[2])}" if brace else words
