"""Generate the tables that decide statuses, for the page about calls that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from from_code import table, write

from jupyter_jaxcb.recording import Rule
from jupyter_jaxcb.recording.recorder._window import (
    IN_NO_PROGRAM,
    MOVED,
    PARTLY_OBSERVED,
    RUN_BEGAN_BEFORE,
)
from jupyter_jaxcb.report.summary._status import REASONS, RULES
from jupyter_jaxcb.stack.elision._rules import COMPILED, WHILE_TRACING

# By the heading or sentence above the table: its rows, and what a row says that leaves the status.
TABLES: dict[str, tuple[tuple[Rule[Any], ...], str]] = {
    "### In a compiled program": ((*WHILE_TRACING, *COMPILED), ""),
    "Where JAX's own callbacks were observed only part of the time, a row replaces this:": (
        (PARTLY_OBSERVED,),
        "",
    ),
    "Where a run began before the recording, so does this row:": ((RUN_BEGAN_BEFORE,), ""),
    "For a call that no program makes, there are two rows:": ((IN_NO_PROGRAM, MOVED), ""),
    "### Of a line": (RULES, "as in the program"),
    "Some reasons explain the status of a line better, and replace its reason:": (
        REASONS,
        "as before",
    ),
}


def write_statuses(folder: Path) -> None:
    """Write the page to `folder`."""
    folder.mkdir(exist_ok=True)
    write(folder / "statuses.md", statuses_page())


def statuses_page() -> str:
    """Return the tables, with a heading or sentence before each."""
    return "\n\n".join(
        f"{above}\n\n{_table(rules, unchanged)}" for above, (rules, unchanged) in TABLES.items()
    )


def _table(rules: Iterable[Rule[Any]], unchanged: str) -> str:
    return table(
        ("evidence", "status", "reason", "why"),
        [
            (
                rule.evidence,
                rule.status.words if rule.status else unchanged,
                f"`{rule.reason}`" if rule.reason else "" if rule.status else unchanged,
                rule.why,
            )
            for rule in rules
        ],
    )
