"""Build a table of the host calls of a recording, for pandas, Arrow and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._facts import LoweredSite
from ._recorded_facts import RecordedFacts


class Named(NamedTuple):
    """A categorical column."""

    codes: np.ndarray  # by row: index into `words`, -1 if missing
    words: list[Any]  # the categories


def call_table(recording: RecordedFacts) -> dict[str, np.ndarray | Named]:
    """Return the columns that `Recording.to_pandas` describes, numeric or categorical."""
    calls = recording.calls
    table: dict[str, np.ndarray | Named] = {
        "start_ns": calls["start_ns"],
        "duration_ns": calls["end_ns"] - calls["start_ns"],
        "crossing": calls["crossing"],
        "element": calls["element"],
        "version": calls["version"],
        "queued_ns": calls["queued_ns"],
        "thread": _named(recording.threads, calls["thread"]),
        "error": _named((None, *recording.errors), calls["error"]),
    }
    facts = [_words(recording, fact) for fact in recording.lowered]
    for place, name in enumerate(FACTS):
        table[name] = _named([words[place] for words in facts], calls["lowered"])
    return table


FACTS = (
    "function",
    "flavor",
    "where",
    "file",
    "line",
    "callers",
    "program",
    "process",
    "device",
    "operands",
    "results",
)


def _words(recording: RecordedFacts, fact: LoweredSite) -> tuple[Any, ...]:
    site = fact.site
    operands, results = fact.host_avals()
    return (
        site.function,
        site.flavor,
        recording.where(site),
        site.file,
        site.line,
        "; ".join(f"{frame.function} {recording.where(frame)}" for frame in site.callers),
        fact.program.name if fact.program else None,
        fact.process,
        fact.device or None,
        " ".join(map(str, operands)),
        " ".join(map(str, results)),
    )


def _named(words: Iterable[Any], numbers: np.ndarray) -> Named:
    """Return the categorical column of ``words[number]``; None is a missing value."""
    listed = [_clean(word) if isinstance(word, str) else word for word in words]
    distinct = {word: n for n, word in enumerate(dict.fromkeys(w for w in listed if w is not None))}
    codes = np.array([-1 if word is None else distinct[word] for word in listed], np.int32)
    return Named(codes[numbers] if len(numbers) else np.empty(0, np.int32), list(distinct))


def _clean(word: str) -> str:
    """Escape what UTF-8 cannot encode, such as a lone surrogate in an error message."""
    return word.encode("utf-8", "backslashreplace").decode()


def to_pandas(recording: RecordedFacts) -> Any:
    """See `Recording.to_pandas`."""
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "recording.to_pandas() needs pandas, which is not installed. Run `pip install pandas`, "
            "or use recording.save('calls.csv').",
            name="pandas",
        ) from error
    table: Mapping[str, np.ndarray | Named] = call_table(recording)
    return pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(column.codes, column.words)
            if isinstance(column, Named)
            else column
            for name, column in table.items()
        }
    )
