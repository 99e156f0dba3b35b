"""One function under several transformations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ._recording import Recording
from ._str import printed


@dataclasses.dataclass(frozen=True, repr=False)
class Matrix:
    """The callbacks of one function under several transformations.

    Attributes:
        transformations: the names of all transformations that were tried, in order.
        columns: by transformation, a recording of the compiled program, which did not run.
        refused: by transformation that JAX or a callback refuses, the error message.
    """

    transformations: tuple[str, ...]

    columns: Mapping[str, Recording]
    refused: Mapping[str, str]

    def __str__(self) -> str:
        """Return the table as plain text."""
        return printed(self)

    def __repr__(self) -> str:
        refused = f", refused: {', '.join(self.refused)}" if self.refused else ""
        return f"<Matrix of {', '.join(self.columns)}{refused}>"
