"""The options a callback is registered with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


class Options:
    """Base of each flavor's options: a frozen dataclass, one field per decorator keyword."""

    __slots__ = ()

    def settings(self) -> dict[str, Any]:
        """Return all options by name; executor options only if there is an executor."""
        return {name: value for name, value, _ in _fields(self)}

    def words(self) -> str:
        """Return the options that differ from the default: ``vmap_method=sequential, ordered``."""
        return ", ".join(
            name if value is True else f"{name}={value}"
            for name, value, default in _fields(self)
            if value != default
        )


def _fields(options: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, value and default of each option."""
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
    """How an executor runs the batch elements. Equal for the same executor and equal options."""

    executor: Any  # a name, or the object itself
    chunksize: int | None = None  # batch elements sent together; None: chosen by measured cost
    timeout: float | None = None  # seconds per batch element
    retries: int = 0  # per batch element

    def _key(self) -> tuple[Any, ...]:
        executor = self.executor if isinstance(self.executor, str) else id(self.executor)
        return executor, self.chunksize, self.timeout, self.retries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutorOptions) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def word(self) -> str:
        """The executor as error messages name it: ``executor='threads'``."""
        return f"executor={executor_word(self.executor)}"


def executor_word(executor: Any) -> str:
    """Return a name in quotes, or ``<Client>`` for an object of class Client."""
    return repr(executor) if isinstance(executor, str) else f"<{type(executor).__name__}>"
