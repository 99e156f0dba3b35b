"""Tell how much memory the process uses."""

from __future__ import annotations

import ctypes
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None


class _Allocated(ctypes.Structure):
    """The ``struct mallinfo2`` of the GNU C library."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks"),
            *("fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def used_bytes() -> int | None:
    """Return the memory of small allocations, without large arrays; None if it is not known.

    Not the size of the process, which stays when memory is freed and used again. Only the GNU C
    library has this figure. Elsewhere, as on macOS, it is the most memory that the process has ever
    used: what grows into memory that was freed before is not seen. Windows has neither.
    """
    find = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if find is not None:
        find.restype = _Allocated
        return find().uordblks
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
