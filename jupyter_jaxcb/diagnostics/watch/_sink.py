"""Hand the values of each step to a function of the user, such as a logger."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable

import numpy as np

from ..notes import Block, values_of

Sink = Callable[[int, dict[str, float]], object]


class Sinking:
    """The thread that calls a function of the user, so that the program does not wait for it.

    Args:
        sink: takes the number of the step and the mean of each variable.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._sent: queue.SimpleQueue[tuple[Block, int, bytes] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._parts: dict[tuple[Block, int], list[bytes]] = {}  # of steps that shards still compute
        self._counted: dict[Block, tuple[int, int]] = {}  # steps of earlier runs, last step
        self._thread = threading.Thread(target=self._run, name="jupyter_jaxcb sink", daemon=True)
        self._thread.start()

    def put(self, block: Block, step: int, sent: bytes) -> None:
        """Hand over what a block sent in its step `step`."""
        self._sent.put((block, step, sent))

    def close(self) -> None:
        """Wait until all steps are handed over.

        Raises:
            Exception: what the function raised; later steps were not handed over.
        """
        self._sent.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while (one := self._sent.get()) is not None:
                self._collect(*one)
            for (block, count), parts in self._parts.items():  # that only some shards computed
                self._hand_over(block, count, parts)
        except BaseException as error:
            self._error = error

    def _hand_over(self, block: Block, count: int, parts: list[bytes]) -> None:
        self._sink(self._step(block, count, parts[0]), means(block, parts))

    def _collect(self, block: Block, count: int, sent: bytes) -> None:
        """Hand over a step once all shards have sent it."""
        parts = self._parts.setdefault((block, count), [])
        parts.append(sent)
        if len(parts) == block.facts[0].shards:
            del self._parts[block, count]
            self._hand_over(block, count, parts)

    def _step(self, block: Block, count: int, sent: bytes) -> int:
        """Return the number of the step, of which only every so-manyth may be sent."""
        facts = block.facts[0]
        every, loops = facts.note.options.every, facts.loops
        if every == 1 or not loops:
            return count
        if None in loops:
            return count * every
        _, steps = facts.read(np.frombuffer(sent, np.int32)[None, : facts.size])
        step = int(np.ravel_multi_index(steps[0].max(axis=0), loops))  # type: ignore[arg-type]
        before, last = self._counted.get(block, (0, -1))
        before += math.prod(loops) if step <= last else 0  # type: ignore[arg-type]
        self._counted[block] = before, step
        return before + step


def means(block: Block, sent: list[bytes]) -> dict[str, float]:
    """Return the mean of each variable over its values, batch elements and shards."""
    found = {}
    for facts, numbers, _ in values_of(block, sent):
        total, _, _, nan, inf, finite, *own = numbers.astype(np.float64).sum(axis=(0, 1))
        good = finite and not nan and not inf
        found[facts.name] = float(total / finite) if good else float("nan")
        for (name, _), value in zip(facts.note.options.reductions, own, strict=False):
            found[f"{facts.name}.{name}"] = float(value / numbers[..., 0].size)
    return found
