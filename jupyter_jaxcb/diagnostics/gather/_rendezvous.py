"""Exchange bytes between the processes of `jax.distributed`, and name missing processes."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import numpy as np

from ... import jax_compat

_SLICE_SECONDS = 0.2  # of waiting at a time, because signals are not handled meanwhile
_PIECE = 1 << 20  # bytes sent at once
_COUNT = struct.Struct("<I")
_ROOT = "jupyter_jaxcb/gather"
_meetings = itertools.count()  # numbers the calls of `gather`, equally in all processes


class Rendezvous(Protocol):
    """One call of `gather`, in which all processes take part."""

    def post(self, name: str, data: bytes) -> None:
        """Send `data` to the others; use each name once."""
        ...

    def read(self, name: str, process: int) -> bytes:
        """Wait for the data that `process` posts under `name`, and return it."""
        ...


@contextmanager
def meeting(index: int, count: int, seconds: float) -> Iterator[Rendezvous]:
    """Wait until all processes have arrived, then let them exchange data.

    Yields:
        A `Rendezvous`.

    Raises:
        TimeoutError: a process did not arrive within `seconds`, stopped responding for that long,
            or gave up; the message names it.
    """
    store = jax_compat.shared_store()
    if store is None:
        yield _Collective()
        return
    found = _Stored(store, index, count, seconds)
    try:
        found.wait_for_all()
        yield found
    except BaseException as error:
        found.give_up(error)
        raise
    found.end()


class _Stored:
    """A meeting through JAX's key-value store."""

    def __init__(self, store: jax_compat.Store, index: int, count: int, seconds: float) -> None:
        self._store = store
        self._place = f"{_ROOT}/{next(_meetings)}"
        while self._over():  # the others gave up; if they try again, they use the next number
            self._place = f"{_ROOT}/{next(_meetings)}"
        self._index = index
        self._others = [process for process in range(count) if process != index]
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def wait_for_all(self) -> None:
        self.post("here", b"")
        for process in self._others:
            self._piece("here", process, 0, renew=False)

    def post(self, name: str, data: bytes) -> None:
        pieces = max(1, -(-len(data) // _PIECE))
        for piece in range(pieces):
            head = _COUNT.pack(pieces) if piece == 0 else b""
            part = data[piece * _PIECE : (piece + 1) * _PIECE]
            self._store.put(self._name(name, self._index, piece), head + part)

    def read(self, name: str, process: int) -> bytes:
        first = self._piece(name, process, 0)
        (pieces,) = _COUNT.unpack_from(first)
        rest = [self._piece(name, process, piece) for piece in range(1, pieces)]
        return b"".join([first[_COUNT.size :], *rest])

    def end(self) -> None:
        """Clean up: process 0 deletes the data once all others have read it."""
        self.post("done", b"")
        if self._index == 0:
            try:
                for process in self._others:
                    self._piece("done", process, 0)
            except TimeoutError:
                return  # its own data is complete nevertheless
            self._store.delete(self._place)

    def give_up(self, error: BaseException) -> None:
        """Notify the processes that are waiting, and those that arrive late."""
        words = f"{type(error).__name__}: {error}"
        with suppress(Exception):  # if the store is gone, no process waits
            self._store.put(f"{self._place}/over/{self._index}", words.encode(errors="replace"))
            self._store.delete(f"{self._place}/data/{self._index}")

    def _piece(self, name: str, process: int, piece: int, renew: bool = True) -> bytes:
        while True:
            left = self._deadline - time.monotonic()
            found = self._store.get(self._name(name, process, piece), min(left, _SLICE_SECONDS))
            if found is not None:
                if renew:
                    self._deadline = time.monotonic() + self._seconds
                return found
            self._raise_if_one_gave_up()
            if left <= _SLICE_SECONDS:
                raise TimeoutError(self._who_is_missing(process))

    def _name(self, name: str, process: int, piece: int) -> str:
        return f"{self._place}/{name}/{process}/{piece}"

    def _over(self) -> dict[str, bytes]:
        return self._store.under(f"{self._place}/over")

    def _raise_if_one_gave_up(self) -> None:
        for name, words in self._over().items():
            process = name.rsplit("/", 1)[-1]
            raise TimeoutError(
                f"cannot gather: process {process} gave up with {words.decode()!r}. Call "
                "jaxcb.gather again in every process."
            )

    def _who_is_missing(self, process: int) -> str:
        came = self._store.under(f"{self._place}/here")
        numbers = {int(one.rsplit("/", 2)[-2]) for one in came}
        missing = sorted(set(self._others) - numbers)
        total = len(self._others) + 1
        if not missing:
            return (
                f"cannot gather: process {process} of {total} arrived but has not responded for "
                f"{self._seconds:g} s. If it needs more time, pass timeout= in seconds."
            )
        processes = "process" if len(missing) == 1 else "processes"
        return (
            f"cannot gather: {processes} {_numbers(missing)} of {total} did "
            f"not call jaxcb.gather within {self._seconds:g} s. Every process of a jax.distributed "
            "run must call it equally often; pass timeout= in seconds to wait longer."
        )


def _numbers(numbers: Sequence[int], most: int = 10) -> str:
    listed = ", ".join(map(str, numbers[:most]))
    return listed if len(numbers) <= most else f"{listed}, {len(numbers) - most} more"


class _Collective:
    """A meeting through JAX's public collectives, with JAX's timeout."""

    def __init__(self) -> None:
        self._found: dict[str, list[bytes]] = {}

    def post(self, name: str, data: bytes) -> None:
        lengths = jax_compat.from_all(np.array([len(data)], np.int32)).reshape(-1).tolist()
        padded = np.zeros(max(1, *lengths), np.uint8)
        padded[: len(data)] = np.frombuffer(data, np.uint8)
        rows = np.asarray(jax_compat.from_all(padded)).reshape(len(lengths), -1)
        self._found[name] = [
            row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)
        ]

    def read(self, name: str, process: int) -> bytes:
        return self._found[name][process]
