"""Functions of ours whose frames are looked for on the stacks of threads, by their code.

What the frames' variables hold is said where they are read, see `_running`.
"""

from __future__ import annotations

from types import CodeType

# What XLA, or an eager call, calls, and what makes the host calls.
CROSSINGS: set[CodeType] = set()
# Those among them that wait for others to make the calls, and look at their `guard` meanwhile.
WAITING: set[CodeType] = set()
# What calls a crossing itself, outside of any program.
EAGER: set[CodeType] = set()

_PARTS = tuple(f"{__name__.partition('.')[0]}.{part}" for part in ("stack", "diagnostics"))


def is_own_module(name: str) -> bool:
    """Whether the module called `name` is one of ours that host calls run through."""
    return name.startswith(_PARTS)
