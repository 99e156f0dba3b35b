"""Find the dispatched programs that are not known to be done, and join JAX's wait for them.

Callbacks work without this module. If a later JAX lacks one of its pieces, blocks wait for fewer
programs, an interrupt refuses fewer calls, and `jax.effects_barrier` does not wait for the calls of
queued callbacks.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable
from typing import Annotated, Any

import jax

from ._required import runtime_tokens

_Token = Annotated[Any, "jax._src.core.Token"]

# The smallest result of each unfinished run, so that it can be waited for even if the user drops
# the result. These are the user's own objects: donating one deletes it in this list too.
_runs: collections.deque[Any] = collections.deque()


def note_run(results: Any) -> None:
    """Note a run by its results, and drop the results of finished runs."""
    if _runs:
        _drop_finished()
    own = [results] if hasattr(results, "is_ready") else jax.tree.leaves(results)
    if own and hasattr(own[0], "is_ready") and not is_done(own[0]):
        arrays = [array for array in own if hasattr(array, "is_ready")]
        _runs.append(min(arrays, key=lambda array: array.nbytes))


def _drop_finished() -> None:
    with contextlib.suppress(IndexError):  # another thread may do the same
        while is_done(_runs[0]):
            _runs.popleft()


def unfinished_runs() -> list[Any]:
    """Return an array of each noted run that is not done, whichever thread dispatched it."""
    return [array for array in list(_runs) if not is_done(array)]


def unfinished_arrays() -> list[Any]:
    """Return all live arrays that are still being computed, and ordered tokens, which hold arrays.

    Includes an array of each noted run, even if the user has dropped its results.
    """
    ordered = map(_array_in, runtime_tokens.current_tokens.values())
    found = [
        *jax.live_arrays(),
        *_runs,
        *(array for array in ordered if hasattr(array, "is_ready")),
    ]
    return [array for array in found if not is_done(array)]


def _array_in(token: _Token) -> Any:
    return getattr(token, "_buf", None)


def unfinished_tokens() -> list[Any]:
    """Return the tokens of programs with unordered effects, which can only be waited for."""
    return list(runtime_tokens.output_runtime_tokens.values())


def is_done(array: Any) -> bool:
    """Return whether an array is computed, has failed, or is deleted."""
    return array.is_deleted() or array.is_ready()


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
