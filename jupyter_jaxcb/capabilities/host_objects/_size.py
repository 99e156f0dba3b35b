"""Measure how much memory an object takes."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}
_SHARE = 8  # of the machine's memory, for each host object
_UNKNOWN_MACHINE = 8 * 1024**3


def default_limit() -> int:
    """Return an eighth of the machine's memory, in bytes."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        machine = _UNKNOWN_MACHINE
    return machine // _SHARE


def parsed(size: int | str) -> int:
    """Return a size in bytes: ``1_000_000``, ``"1 GB"``, ``"512 MiB"``.

    Raises:
        ValueError: it is not a size above zero.
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(size))
    unit = found and _UNITS.get(found[2].upper())
    number = float(found[1]) * unit if found and unit else 0
    if isinstance(size, bool) or number < 1:
        raise ValueError(
            f'max_bytes={size!r} is not a size. Pass a number of bytes, or a string such as "1 GB" '
            'or "512 MiB".'
        )
    return int(number)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where it is not known."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


def visible_bytes(value: Any, seen: set[int] | None = None) -> int | None:
    """Return the memory of arrays, containers and attributes; None if none of these was found."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    nbytes = getattr(value, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if isinstance(value, str | bytes | bytearray | int | float | complex):
        return sys.getsizeof(value)
    parts = _parts(value)
    if parts is None:
        return None
    found = [visible_bytes(part, seen) for part in parts]
    known = [one for one in found if one is not None]
    return sys.getsizeof(value) + sum(known) if known or not found else None


def _parts(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    attributes = getattr(value, "__dict__", None)
    if isinstance(value, type) or callable(value) or not isinstance(attributes, dict):
        return None
    return list(attributes.values())
