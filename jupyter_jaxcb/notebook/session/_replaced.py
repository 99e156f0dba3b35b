"""Functions of IPython that the extension replaces while it is loaded."""

from __future__ import annotations

from typing import Any


class Replaced:
    """Attributes that were replaced, and can be restored.

    A replacement stays if other code has replaced the same attribute since.
    """

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, Any]] = []  # owner, name, before, now

    def __bool__(self) -> bool:
        return bool(self._attributes)

    def replace(self, owner: Any, name: str, now: Any) -> None:
        """Replace an attribute."""
        self._attributes.append((owner, name, getattr(owner, name), now))
        setattr(owner, name, now)

    def restore(self) -> None:
        """Restore all attributes, the last one first."""
        while self._attributes:
            owner, name, before, now = self._attributes.pop()
            if getattr(owner, name) is not now:
                continue
            is_hidden = name in vars(owner) and callable(getattr(type(owner), name, None))
            if is_hidden:  # a method of the class
                delattr(owner, name)
            else:
                setattr(owner, name, before)
