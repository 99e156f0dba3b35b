"""Recognize functions of JAX by their frames, in which JAX shows what it traces and lowers."""

from __future__ import annotations

import functools
import os
from types import CodeType, FrameType
from typing import Any, NamedTuple


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
