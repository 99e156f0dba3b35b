"""A row of a table that decides a status. Compiling decides some, and runs decide others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ._facts import Reason, Status

Seen = TypeVar("Seen")  # the evidence


@dataclasses.dataclass(frozen=True)
class Rule(Generic[Seen]):
    """If its evidence holds, and that of no row above, it decides."""

    evidence: str
    holds: Callable[[Seen], Any]
    status: Status | None  # None: `more` has the status and reason
    reason: Reason | None
    why: str  # the rule is right
    more: Callable[[Seen], Any] | None = None  # what the table says beside status and reason


def decide(rules: Iterable[Rule[Seen]], seen: Seen) -> Rule[Seen]:
    """Return the row that decides; the last one of a table always holds."""
    return next(rule for rule in rules if rule.holds(seen))
