"""What has been dispatched and JAX does not know to be done.

Nothing in here is needed for callbacks to work: where a piece is gone in a later JAX, less is
waited for, and less is refused after an interrupt.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any

import jax

try:
    from jax._src.dispatch import runtime_tokens as _tokens
except ImportError:
    _tokens: Any = None


# The smallest result of each run that was seen and is not done, so that it can be waited for though
# nobody keeps it. The same object as the user's: who donates it deletes it here too.
_runs: collections.deque[Any] = collections.deque()


def note_run(results: Any) -> None:
    """Notes a run by its results; lets go of those of earlier runs that are done."""
    if _runs:
        _let_go()
    own = [results] if hasattr(results, "is_ready") else jax.tree.leaves(results)
    if own and hasattr(own[0], "is_ready") and not is_done(own[0]):
        arrays = [array for array in own if hasattr(array, "is_ready")]
        _runs.append(min(arrays, key=lambda array: array.nbytes))


def _let_go() -> None:
    with contextlib.suppress(IndexError):  # another thread does the same
        while is_done(_runs[0]):
            _runs.popleft()


def unfinished_runs() -> list[Any]:
    """An array of each run that was seen, wherever it was dispatched, and is not done."""
    return [array for array in list(_runs) if not is_done(array)]


def unfinished_arrays() -> list[Any]:
    """The arrays that are alive and still being computed, and the tokens that are arrays inside.

    Of runs that were seen also where nobody keeps their results.
    """
    ordered = [
        getattr(token, "_buf", None) for token in getattr(_tokens, "current_tokens", {}).values()
    ]
    found = [
        *jax.live_arrays(),
        *_runs,
        *(array for array in ordered if hasattr(array, "is_ready")),
    ]
    return [array for array in found if not is_done(array)]


def unfinished_tokens() -> list[Any]:
    """The tokens of programs with unordered effects: they can be waited for, and not be asked."""
    return list(getattr(_tokens, "output_runtime_tokens", {}).values())


def is_done(array: Any) -> bool:
    """Whether an array is computed, has failed, or is gone."""
    return array.is_deleted() or array.is_ready()
