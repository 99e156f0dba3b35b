"""What the program sends while it runs, on any of XLA's threads."""

from __future__ import annotations

import collections
import dataclasses
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._note import Note

_INPUTS = slice(13, None, 7)  # whether each is bad, in the numbers of a bad value
_MOST_BAD = 8  # of one value: the first is what is asked for
_MOST_STEPS = 20_000  # of one call; then every second is dropped, and the totals stay


@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a value of a lowered program.

    Attributes:
        note: what traced it.
        shape: of one batch element.
        dtype: its name.
        batch: the sizes of the vmap levels, outermost first.
        elements: how many batch elements have numbers of their own; 1 if they are together.
        is_wide: whether the numbers have 64 bits.
        can_stop: whether the program can end early: one device alone cannot, because the others
            wait for it, and then XLA ends the process.
        shards: how many devices of this process compute it, each on its shard. If there are
            several, the first of the note's loops is that over the shards.
        values: how many values are sent too; 0 but for small arrays outside of a vmap.
    """

    note: Note
    shape: tuple[int, ...]
    dtype: str
    batch: tuple[int, ...]
    elements: int
    is_wide: bool
    can_stop: bool = True
    shards: int = 1
    values: int = 0

    @property
    def name(self) -> str:
        """The variable, or that it is the cotangent of one."""
        note = self.note
        return f"{note.cotangent_of} (cotangent)" if note.is_backward else note.place.expression

    @property
    def loops(self) -> tuple[int | None, ...]:
        """The lengths of the loops, outermost first."""
        return self.note.loops[self.shards > 1 :]

    @property
    def is_together(self) -> bool:
        """Whether the numbers are those of all batch elements."""
        return self.elements != math.prod(self.batch)

    @property
    def size(self) -> int:
        """How many 32-bit integers one step has."""
        numbers = 6 + len(self.note.options.reductions) + self.values
        return self.elements * (numbers * (1 + self.is_wide) + len(self.note.loops))

    def shard_of(self, sent: bytes) -> int | None:
        """Return which device sent a step; None if only one computes it."""
        if self.shards == 1:
            return None
        at = 4 * (self.size // self.elements - len(self.note.loops))
        return int.from_bytes(sent[at : at + 4], sys.byteorder)

    def read(self, sent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers and the steps, of shape ``(n, elements, loops)``.

        The numbers are of shape ``(n, elements, m)``: six, those of the user, then the values.

        Args:
            sent: of shape ``(n, size)``.
        """
        each = sent.reshape(len(sent), self.elements, -1)
        split = each.shape[-1] - len(self.note.loops)
        kind = np.float64 if self.is_wide else np.float32
        steps = each[..., split + (self.shards > 1) :]
        return np.ascontiguousarray(each[..., :split]).view(kind), steps


class Totals(NamedTuple):
    """The numbers of one value in several steps together.

    Attributes:
        min, max: of the finite values; inf and -inf if there is none.
        nan, inf: how many values are.
    """

    min: float = math.inf
    max: float = -math.inf
    nan: int = 0
    inf: int = 0


def totals_of(numbers: np.ndarray) -> Totals:
    """Return the totals of numbers of shape ``(n, elements, 6)`` or more."""
    _, least, most, nan, inf, finite, *_ = np.moveaxis(numbers.astype(np.float64), -1, 0)
    some = finite > 0
    least, most = least[some].min(initial=math.inf), most[some].max(initial=-math.inf)
    return Totals(float(least), float(most), int(nan.sum()), int(inf.sum()))


def merged(totals: Iterable[Totals]) -> Totals:
    """Return the totals of all."""
    least, most, nan, inf = zip(*totals, strict=True)
    return Totals(min(least), max(most), sum(nan), sum(inf))


class Block:
    """What one call of a program sends at each step: the numbers of all its values."""

    def __init__(self, *facts: Facts) -> None:
        self.facts = [*facts]  # in the order of the arguments

    def __call__(self, *arrays: np.ndarray) -> tuple:
        store = _store
        if store is not None:  # a program that outlives its block has no store
            store.add(self, b"".join(arrays))  # type: ignore[arg-type]  # arrays are buffers
        return ()


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """The numbers of one value at each step that is kept.

    Attributes:
        facts: what is known of the value.
        shard: the device that sent them; None if only one computes the value.
        count: how many steps there were; more than are kept in a long run.
        arrivals: of shape ``(n,)``, in nanoseconds, grows.
        numbers: of shape ``(n, elements, m)``: the six, those of the user, then the values.
        steps: of shape ``(n, elements, loops)``.
        around: for each of the ``n``, the iterations of the Python loops around.
        dropped: the totals of the steps that are not kept.
    """

    facts: Facts
    shard: int | None
    count: int
    arrivals: np.ndarray
    numbers: np.ndarray
    steps: np.ndarray
    around: list[tuple[int, ...]]
    dropped: Totals


class _Sent:
    """What a block sent from one device.

    Attributes:
        kept: the time, the iterations of the Python loops, and the bytes of each step.
        count: how many steps there were.
        dropped: of each value, the totals of the steps that are not kept any more.
    """

    def __init__(self, block: Block) -> None:
        self.kept: list[tuple[int, tuple[int, ...], bytes]] = []
        self.count, self.dropped = 0, [Totals()] * len(block.facts)

    def thin(self, block: Block) -> None:
        """Drop every second of the older steps, and keep their totals."""
        older = slice(1, len(self.kept) // 2, 2)  # the recent ones stay whole
        sent = [numbers for *_, numbers in self.kept[older]]
        totals = [totals_of(numbers) for _, numbers, _ in values_of(block, sent)]
        self.dropped = [merged(pair) for pair in zip(self.dropped, totals, strict=True)]
        del self.kept[older]


class Store:
    """The numbers of all values, in the order in which they arrived."""

    def __init__(self, stops: bool = False, sink: Callable[..., None] | None = None) -> None:
        self._sink = sink  # called with each block, the number of the step, and what it sent
        self._stops, self.is_stopped = stops, False
        self._sent: dict[tuple[Block, int | None], _Sent] = {}  # by block and shard
        self.iterations: tuple[int, ...] = ()  # of the Python loops that run
        self.latest: tuple[Block, bytes] | None = None
        self.left_out: dict[str, int] = {}  # arrays of variables that have many
        self.bad: list[tuple[int, Facts, list[float], list[int]]] = []
        self._bad_of: collections.Counter[Facts] = collections.Counter()
        self._lock = threading.Lock()  # several devices send at once
        self._thread = threading.get_ident()
        self.has_other_threads = False  # which made arrays

    def bound_unwatched(self) -> None:
        """Keep in mind that another thread than that of the block makes arrays."""
        self.has_other_threads |= threading.get_ident() != self._thread

    def add(self, block: Block, numbers: bytes) -> None:
        """Keep the numbers of one step."""
        sender = block, block.facts[0].shard_of(numbers)
        with self._lock:
            sent = self._sent.get(sender) or self._sent.setdefault(sender, _Sent(block))
            if len(sent.kept) >= _MOST_STEPS:
                sent.thin(block)
            sent.kept.append((time.perf_counter_ns(), self.iterations, numbers))
            self.latest = block, numbers
            step, sent.count = sent.count, sent.count + 1
            if self._sink is not None:
                self._sink(block, step, numbers)  # in order; it only puts it into a queue

    def add_array(self, block: Block, numbers: Any, is_bad: Any) -> None:
        """Keep the numbers of an array that is computed."""
        (facts,), sent = block.facts, np.asarray(numbers)
        if facts.note.rows:
            self.add(block, sent.tobytes())
        if is_bad:
            own = facts.read(sent.reshape(1, -1))[0][0, 0, :6].tolist()
            self.add_bad(facts, [*own, 1.0], [0])

    def add_bad(self, facts: Facts, numbers: list, steps: list) -> None:
        """Keep the numbers of a bad value and its inputs.

        Args:
            facts: the value.
            numbers: those of the value and of each input, each followed by whether it is bad.
            steps: the number of the batch element, that of the shard if there are several, then
                the step of each loop in the program.
        """
        first = 1 + (facts.shards > 1)
        steps = [*steps[:first], *self.iterations, *steps[first:]]
        with self._lock:
            self._bad_of[facts] += 1
            if self._bad_of[facts] <= _MOST_BAD:
                self.bad.append((time.perf_counter_ns(), facts, numbers, steps))
        if self._stops:
            self.is_stopped = True
            # XLA may look at a result before it looks at the value that made it bad.
            made_here = not any(numbers[_INPUTS])
            if facts.can_stop and (made_here or self._bad_of[facts] > 1):
                raise FloatingPointError("a bad value ends the program")

    def wants_bad(self, facts: Facts) -> bool:
        """Return whether one more bad value is kept."""
        return self._bad_of[facts] < _MOST_BAD

    def step(self) -> list[tuple[int, int | None]]:
        """Return the step and the length of each loop that runs, the outermost first."""
        found: list[tuple[int, int | None]] = [(n, None) for n in self.iterations]
        if self.latest is not None:
            block, sent = self.latest
            facts = block.facts[0]
            _, steps = facts.read(np.frombuffer(sent, np.int32)[None, : facts.size])
            found += zip(steps[0].max(axis=0).tolist(), facts.loops, strict=True)
        return found

    def histories(self) -> list[History]:
        """Return what each value was, in the order of the program."""
        with self._lock:
            copies = [
                (sender, [*sent.kept], sent.count, sent.dropped)
                for sender, sent in self._sent.items()
            ]
        histories = []
        for (block, shard), kept, count, dropped in copies:
            times, around, sent = map(list, zip(*kept, strict=True))
            arrivals, values = np.array(times), values_of(block, sent)
            for (facts, numbers, steps), totals in zip(values, dropped, strict=True):
                histories.append(
                    History(facts, shard, count, arrivals, numbers, steps, around, totals)
                )
        return sorted(histories, key=lambda history: history.facts.note.number)


def values_of(block: Block, sent: list[bytes]) -> Iterator[tuple[Facts, np.ndarray, np.ndarray]]:
    """Return the numbers and the steps of each value."""
    whole = np.frombuffer(b"".join(sent), np.int32).reshape(len(sent), -1)
    at = 0
    for facts in block.facts:
        yield facts, *facts.read(whole[:, at : at + facts.size])
        at += facts.size


# Not thread-local: XLA calls from threads that never saw the block.
_store: Store | None = None


def receive_into(store: Store | None) -> None:
    """Let programs send to `store`; None: nowhere.

    Raises:
        RuntimeError: they send to another one.
    """
    global _store
    if store is not None and _store is not None:
        raise RuntimeError("cannot watch while another block watches. Leave that block first.")
    _store = store


def receiver() -> Store | None:
    """Return where programs send to now; None: nowhere."""
    return _store
