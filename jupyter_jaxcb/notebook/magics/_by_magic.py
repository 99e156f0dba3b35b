"""The decorators as ``%%jax_callback`` uses them: messages then say what to type in its line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def by_magic(register: Callable[..., Any]) -> Callable[..., Any]:
    """`register`, a decorator, for functions of a cell."""

    @functools.wraps(register)
    def registering(function: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython: not a frame the user cares for
        callback = register(function, **options)
        callback.host.made_by = "magic"
        return callback

    return registering
