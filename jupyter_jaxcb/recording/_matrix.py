"""One function under several transformations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ._recording import Recording
from ._str import printed


@dataclasses.dataclass(frozen=True, repr=False)
class Matrix:
    """What each transformation would make of the callbacks of one function.

    Attributes:
        transformations: all that were tried, in order.
        columns: by transformation, what was asked ahead of time.
        refused: those that JAX or a callback refuses, with what it says.
    """

    transformations: tuple[str, ...]

    columns: Mapping[str, Recording]
    refused: Mapping[str, str]

    def __str__(self) -> str:
        """The table, as a terminal shows it."""
        return printed(self)

    def __repr__(self) -> str:
        refused = f", refused: {', '.join(self.refused)}" if self.refused else ""
        return f"<Matrix of {', '.join(self.columns)}{refused}>"
