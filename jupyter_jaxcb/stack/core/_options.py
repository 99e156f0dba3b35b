"""What a user chose when registering a callback."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


class Options:
    """The options of a flavor: a frozen dataclass whose fields are the decorator's keywords."""

    __slots__ = ()

    def settings(self) -> dict[str, Any]:
        """All options by name; those of an executor only where there is one."""
        return {name: value for name, value, _ in _fields(self)}

    def words(self) -> str:
        """``vmap_method=expand_dims, ordered``: the options that differ from their defaults."""
        return ", ".join(
            name if value is True else f"{name}={value}"
            for name, value, default in _fields(self)
            if value != default
        )


def _fields(options: Any) -> Iterator[tuple[str, Any, Any]]:
    """The name, value and default of each option."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if isinstance(value, ExecutorOptions):
            yield from _fields(value)
        elif field.name == "executor":
            yield field.name, value if isinstance(value, str) else executor_word(value), None
        elif field.name != "spread":
            yield field.name, value, field.default


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExecutorOptions:
    """Where and how the batch elements run. Equal for the same executor and equal options."""

    executor: Any  # a name, or the object itself
    chunksize: int | None = None  # batch elements that are sent together; None: by what they cost
    timeout: float | None = None  # seconds a batch element
    retries: int = 0  # of a batch element

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
