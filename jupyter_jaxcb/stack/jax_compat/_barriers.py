"""Hook into JAX's barrier.

Callbacks work without this module. If a later JAX lacks its piece, `jax.effects_barrier` does not
wait for the calls of queued callbacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._required import runtime_tokens


def after_barriers(wait: Callable[[], None], settle: Callable[[], None]) -> None:
    """Extend every `jax.effects_barrier`, and JAX's own one at exit.

    Args:
        wait: called if the barrier raises the error of a program.
        settle: called otherwise; may raise.
    """
    kind: Any = type(runtime_tokens)
    original = getattr(kind, "block_until_ready", None)
    if original is None:
        return

    @functools.wraps(original)
    def block_until_ready(self: Any) -> None:
        __tracebackhide__ = True
        try:
            original(self)
        except Exception:
            wait()
            raise
        settle()

    kind.block_until_ready = block_until_ready
