"""Build a table of the host calls of a recording, for pandas and CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Words = tuple[np.ndarray, list[Any]]  # by row an index into the list, -1 if missing; the list
FACTS = (
    "function", "flavor", "where", "file", "line", "callers", "program", "device", "operands",
    "results",
)  # fmt: skip


def call_table(recording: Any) -> dict[str, np.ndarray | Words]:
    """Return the columns that `Recording.to_pandas` describes: numbers, or categories.

    Those in `FACTS` are equal for all calls of one of `Recording.lowered`.
    """
    calls = recording.calls
    table = {
        "start_ns": calls["start_ns"],
        "duration_ns": calls["end_ns"] - calls["start_ns"],
        **{name: calls[name] for name in ("crossing", "element", "version", "queued_ns")},
        "thread": _words(recording.threads, calls["thread"]),
        "error": _words((None, *recording.errors), calls["error"]),
    }
    facts = []
    for fact in recording.lowered:
        site, (operands, results) = fact.site, fact.host_avals()
        callers = (f"{frame.function} {recording.where(frame)}" for frame in site.callers)
        facts.append((
            site.function, site.flavor, recording.where(site), site.file, site.line,
            "; ".join(callers), fact.program.name if fact.program else None, fact.device or None,
            " ".join(map(str, operands)), " ".join(map(str, results)),
        ))  # fmt: skip
    for number, name in enumerate(FACTS):
        table[name] = _words([words[number] for words in facts], calls["lowered"])
    return table


def _words(words: Iterable[Any], numbers: np.ndarray) -> Words:
    """Return the categorical column of ``words[number]``; None is a missing value."""
    # UTF-8 cannot encode a lone surrogate, which an error message may have.
    clean = [
        word.encode("utf-8", "backslashreplace").decode() if isinstance(word, str) else word
        for word in words
    ]
    distinct = {word: n for n, word in enumerate(dict.fromkeys(w for w in clean if w is not None))}
    codes = np.array([distinct.get(word, -1) for word in clean], np.int32)
    return codes[numbers] if len(numbers) else np.empty(0, np.int32), list(distinct)


def to_pandas(recording: Any) -> Any:
    """See `Recording.to_pandas`."""
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "recording.to_pandas() needs pandas, which is not installed. Run `pip install pandas`, "
            "or use recording.save('calls.csv').",
            name="pandas",
        ) from error
    return pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(*column) if isinstance(column, tuple) else column
            for name, column in call_table(recording).items()
        }
    )
