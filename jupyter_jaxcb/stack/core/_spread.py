"""Where the lanes of a callback run."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExecutorOptions:
    """Where and how the lanes run. Equal for the same executor and equal options."""

    executor: Any  # a name, or the object itself
    chunksize: int | None = None  # lanes that are sent together; None: by what they cost
    timeout: float | None = None  # seconds a lane
    retries: int = 0  # of a lane

    def _key(self) -> tuple[Any, ...]:
        executor = self.executor if isinstance(self.executor, str) else id(self.executor)
        return executor, self.chunksize, self.timeout, self.retries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutorOptions) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def word(self) -> str:
        """``executor='threads'``, for messages."""
        return f"executor={executor_word(self.executor)}"


def executor_word(executor: Any) -> str:
    """A name in quotes, or the class of an object."""
    return repr(executor) if isinstance(executor, str) else f"<{type(executor).__name__}>"
