"""Find private modules and functions of JAX, and patch them in a way that can be undone."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple


def optional_module(name: str) -> Any:
    """Return a module of JAX; None if this JAX lacks it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class JaxFunction(NamedTuple):
    """A function of JAX. If a later JAX renames it or its variable, no frame matches."""

    module: str
    name: str
    variable: str = ""  # an argument or local variable that is read

    def is_run_by(self, code: CodeType) -> bool:
        """Return whether `code` is that of this function."""
        return code.co_name == self.name and in_module(code, self.module)

    def value_in(self, frame: FrameType) -> Any:
        """Return the value of the variable in a frame; None if the frame is of another function."""
        return frame.f_locals.get(self.variable) if self.is_run_by(frame.f_code) else None


def in_module(code: CodeType, module: str) -> bool:
    """Return whether `code` is in a module such as ``jax._src.api``; False if it has moved."""
    return code.co_filename.endswith(_file(module))


@functools.cache
def _file(module: str) -> str:
    return os.path.join(*module.split(".")) + ".py"


class Changes:
    """Changes that are reverted together, the last one first. Not thread-safe."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def make(self, change: Callable[[], object], undo: Callable[[], None]) -> None:
        """Make a change.

        Args:
            change: makes it.
            undo: reverts it; must be harmless if the change was not made or is already reverted.
        """
        self._undo.append(undo)
        change()

    def revert(self) -> None:
        """Revert all changes; if an interrupt cut this short, a second call reverts the rest."""
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
