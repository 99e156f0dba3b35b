"""The first bad value, from which the others come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..notes import Note, Store
from ._rows import element_of

_SPREADING = {"nan", "both"}  # what comes of an infinite or a large value need not be like it


class Bad(NamedTuple):
    """The first bad value; as text, one sentence.

    Attributes:
        file, line, function, expression, steps, element, shard, direction: as in
            `Row`.
        knows_steps: False in code that JAX differentiates without the loop around it.
        cotangent_of: for the backward pass, the operand whose cotangent is bad.
        what: "NaN" or "inf".
        inputs: name and description of each operand: its range, or how many are bad.
        inputs_are_good: whether the bad value was made here.
    """

    file: str
    line: int
    function: str
    expression: str
    steps: tuple[int, ...]
    knows_steps: bool
    element: tuple[int, ...]
    shard: int | None
    direction: str
    cotangent_of: str
    what: str
    inputs: tuple[tuple[str, str], ...]
    inputs_are_good: bool

    def __str__(self) -> str:
        made = f"gave {self.what}"
        if self.direction == "backward":
            made = f"gave {self.what} as the cotangent of `{self.cotangent_of}`"
        where = [made, *_steps_in_words(self)]
        if self.shard is not None:
            where.append(f"shard {self.shard}")
        if self.element:
            where.append(f"element {', '.join(map(str, self.element))}")
        where.append(self.direction)
        sentence = f"line {self.line} of {self.function}: `{self.expression}` " + (
            f"{where[0]} in {', '.join(where[1:])}" if len(where) > 2 else ", ".join(where)
        )
        if not self.inputs:
            return sentence
        said = ", ".join(f"{name} {description}" for name, description in self.inputs)
        were = "bad too"
        if self.inputs_are_good:
            are_finite = not any(words.startswith("with") for _, words in self.inputs)
            were = "finite" if are_finite else f"without {self.what}"
        return f"{sentence}; its inputs were {were}: {said}"


def _steps_in_words(bad: Bad) -> list[str]:
    if not bad.knows_steps:
        return ["an unknown step"]
    outer, *inner = bad.steps or (None,)
    if outer is None:
        return []
    return [f"step {outer}", *(f"inner step {step}" for step in inner)]


def first_bad(store: Store) -> Bad | None:
    """Return the bad value from which the others come, as far as that is known.

    A value whose inputs are good was made bad here. If only good values come of it, as where
    `jnp.where` hides it, others are preferred. Among several, the steps of a loop arrive one after
    another, and within a step the program's order decides.
    """
    bads = [(when, facts, _bad(facts, numbers, steps)) for when, facts, numbers, steps in store.bad]
    inner = [one for one in bads if not one[1].note.encloses] or bads
    made = [one for one in inner if one[2].inputs_are_good] or inner
    if not made:
        return None
    found: dict[int, list] = {}
    for _, facts, bad in bads:
        if not facts.note.is_backward:
            found.setdefault(facts.note.number, []).append((facts.note, bad.steps))
    if made[0][1].note.options.bad.text in _SPREADING:
        made = [one for one in made if _spreads(one[1].note, one[2].steps, found)] or made
    _, first, bad = min(made, key=lambda one: one[0])
    at = first.note.loops, bad.steps
    together = [one for one in made if (one[1].note.loops, one[2].steps) == at]
    return min(together, key=lambda one: one[1].note.number)[2]


def _spreads(note: Note, steps: tuple[int, ...], found: dict[int, list]) -> bool:
    """Return whether a bad value makes others bad, up to one that nothing uses."""
    if note.is_backward or not note.used_by:
        return True
    return any(
        _spreads(user, at, found)
        for number in note.used_by
        for user, at in found.get(number, ())
        if at[: len(steps)] == steps[: len(at)]
    )


def _bad(call: Any, numbers: list[float], steps: list[int]) -> Bad:
    own, *inputs = np.array(numbers).reshape(-1, 7).tolist()
    note = call.note
    bad = note.options.bad
    what = "NaN" if own[3] and bad.text in ("nan", "both") else "inf"
    what = what if bad.is_finite else f"a value with {bad.text}"
    element, *within = steps
    shard = within.pop(0) if call.shards > 1 else None
    described = tuple((name, _describe(one)) for name, one in zip(note.names, inputs, strict=True))
    return Bad(
        note.place.file, note.place.line, note.place.function, note.place.expression,
        tuple(within), not note.lost, element_of(element, call.batch), shard, note.direction,
        note.cotangent_of, what, described,
        not any(one[6] for one in inputs),
    )  # fmt: skip


def _describe(numbers: list[float]) -> str:
    _, least, most, nan, inf, finite, _ = numbers
    counts = [f"{int(n)} {word}" for n, word in ((nan, "NaN"), (inf, "inf")) if n]
    if counts:
        return f"with {' and '.join(counts)}"
    if finite and least == most:
        return f"= {least:.6g}"
    return f"in [{least:.6g}, {most:.6g}]"
