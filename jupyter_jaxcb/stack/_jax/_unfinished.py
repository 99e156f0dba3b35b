"""What this thread has dispatched and JAX does not know to be done.

Nothing in here is needed for callbacks to work: where a piece is gone in a later JAX, less is
waited for, and less is refused after an interrupt.
"""

from __future__ import annotations

from typing import Any

import jax

try:
    from jax._src.dispatch import runtime_tokens as _tokens
except ImportError:
    _tokens: Any = None


def unfinished_arrays() -> list[Any]:
    """The arrays that are alive and still being computed, and the tokens that are arrays inside."""
    ordered = [
        getattr(token, "_buf", None) for token in getattr(_tokens, "current_tokens", {}).values()
    ]
    found = [*jax.live_arrays(), *(array for array in ordered if hasattr(array, "is_ready"))]
    return [array for array in found if not is_over(array)]


def unfinished_tokens() -> list[Any]:
    """The tokens of programs with unordered effects: they can be waited for, and not be asked."""
    return list(getattr(_tokens, "output_runtime_tokens", {}).values())


def is_over(array: Any) -> bool:
    """Whether an array is computed, has failed, or is gone."""
    return array.is_deleted() or array.is_ready()
