"""Send large arrays to local workers through a file, once, instead of with each chunk."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import threading
import weakref
from typing import Any

import numpy as np

LARGE_BYTES = 1 << 20


class Shared:
    """An array that many chunks need; written to a file when the first of them is pickled.

    The file exists as long as this object.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self._path: str | None = None  # empty if the file could not be written
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        with self._lock:
            if self._path is None:
                self._path = self._written()
        if not self._path:
            return _identity, (self._array,)
        return _read_file, (self._path, self._array.dtype, self._array.shape)

    def _written(self) -> str:
        data = np.ascontiguousarray(self._array).reshape(-1).view(np.uint8)
        path = ""
        try:
            number, path = tempfile.mkstemp(prefix="jaxcb-", suffix=".array")
            weakref.finalize(self, remove_own, path, os.getpid())
            with open(number, "wb") as file:
                file.write(data.data)
        except OSError:  # the disk may be full
            remove_own(path, os.getpid())
            return ""
        return path


def remove_own(path: str, owner: int) -> None:
    """Remove a file if this process is its `owner`, and not a forked child of that."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            os.unlink(path)


def shared_if_large(array: np.ndarray) -> Shared | None:
    """Return `array` wrapped to be sent through a file; None if it is small."""
    return Shared(array) if array.nbytes >= LARGE_BYTES else None


def _identity(array: np.ndarray) -> np.ndarray:
    return array


def _read_file(path: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.ndarray(shape, dtype, buffer=data)
