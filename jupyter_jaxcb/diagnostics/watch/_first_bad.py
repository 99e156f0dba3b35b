"""The first bad value, from which the others come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..notes import Facts, Note, Store
from ._series import Series, element_of
from ._text import place

Mark = Literal["", "first", "bad", "later"]
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

    @property
    def when(self) -> str:
        """The steps, the shard and the batch element in words; "" outside of all of them."""
        where = ["an unknown step"]
        if self.knows_steps:
            words = ["step", *["inner step"] * (len(self.steps) - 1)]
            where = [f"{word} {step}" for word, step in zip(words, self.steps, strict=False)]
        if self.shard is not None:
            where.append(f"shard {self.shard}")
        if self.element:
            where.append(f"element {', '.join(map(str, self.element))}")
        return ", ".join(where)

    def __str__(self) -> str:
        made = f"gave {self.what}"
        if self.direction == "backward":
            made += f" as the cotangent of `{self.cotangent_of}`"
        made += f" in {self.when}" if self.when else ""
        sentence = f"{place(self.file, self.line, self.function)}: `{self.expression}` {made}"
        sentence += f", {self.direction}"
        if not self.inputs:
            return sentence
        were = "bad too"
        if self.inputs_are_good:
            are_finite = not any(words.startswith("with") for _, words in self.inputs)
            were = "finite" if are_finite else f"without {self.what}"
        inputs = ", ".join(f"{name} {description}" for name, description in self.inputs)
        return f"{sentence}; its inputs were {were}: {inputs}"


def first_bad(store: Store) -> Bad | None:
    """Return the bad value from which the others come, as far as that is known.

    A value whose inputs are good was made bad here. If only good values come of it, as where
    `jnp.where` hides it, others are preferred. Among several, the steps of a loop arrive one after
    another, and within a step the program's order decides. A variable of Python code is the first
    only if it arrived first.
    """
    bads = [(when, facts.note, _bad(facts, numbers, at)) for when, facts, numbers, at in store.bad]
    inner = [each for each in bads if not each[1].encloses] or bads
    if not inner:
        return None
    begun = min(when for when, _, _ in inner)
    made = [each for each in inner if _is_made(*each, begun)] or inner
    steps_of: dict[int, list] = {}
    for _, note, bad in bads:
        if not note.is_backward:
            steps_of.setdefault(note.number, []).append((note, bad.steps))
    if made[0][1].options.bad.text in _SPREADING:
        made = [each for each in made if _spreads(each[1], each[2].steps, steps_of)] or made
    _, note, first = min(made, key=lambda each: each[0])
    together = [
        each for each in made if (each[1].loops, each[2].steps) == (note.loops, first.steps)
    ]
    return min(together, key=lambda each: each[1].number)[2]


def _is_made(when: int, note: Note, bad: Bad, begun: int) -> bool:
    """Return whether good inputs became bad, where the first bad value arrived at `begun`.

    Nothing is known of the inputs of a variable in Python, which is seen when its line has run.
    """
    return bad.inputs_are_good and (bool(note.names) or note.is_backward or when == begun)


def marks(series: Sequence[Series], store: Store, first: Bad | None) -> list[Mark]:
    """Say of each variable whether it is bad, and since when.

    Returns:
        For each, "first" for the variable of the first bad value, "bad" for other values that
        were made bad, "later" for those that were bad after the first one and may follow from it,
        and "" for good ones.
    """
    bads = [_bad(f, numbers, at) for _, f, numbers, at in store.bad if not f.note.encloses]
    made = {_line(bad) for bad in bads if bad.inputs and bad.inputs_are_good}
    found: list[Mark] = []
    for one in series:
        if not (one.totals.nan or one.totals.inf):
            found.append("")
        elif first is None or not one.totals.nan:
            found.append("bad")
        elif _line(one) == _line(first) and "first" not in found:
            found.append("first")
        else:
            found.append("bad" if _line(one) in made else "later")
    return found


def _line(at: Bad | Series) -> tuple[str, int, str]:
    return at.file, at.line, at.direction


def _spreads(note: Note, steps: tuple[int, ...], steps_of: dict[int, list]) -> bool:
    """Return whether a bad value makes others bad, up to one that nothing uses."""
    if note.is_backward or not note.used_by:
        return True
    return any(
        _spreads(user, at, steps_of)
        for number in note.used_by
        for user, at in steps_of.get(number, ())
        if at[: len(steps)] == steps[: len(at)]
    )


def _bad(facts: Facts, numbers: list[float], at: list[int]) -> Bad:
    own, *inputs = np.array(numbers).reshape(-1, 7).tolist()
    note, (element, *steps) = facts.note, at
    bad, place = note.options.bad, note.place
    what = "NaN" if own[3] and bad.text in ("nan", "both") else "inf"
    what = what if bad.is_finite else f"a value with {bad.text}"
    shard = steps.pop(0) if facts.shards > 1 else None
    described = tuple((name, _describe(x)) for name, x in zip(note.names, inputs, strict=True))
    return Bad(
        place.file, place.line, place.function, place.expression, tuple(steps), not note.lost,
        element_of(element, facts.batch), shard, note.direction, note.cotangent_of, what, described,
        not any(x[6] for x in inputs),
    )  # fmt: skip


def _describe(numbers: list[float]) -> str:
    _, least, most, nan, inf, finite, _ = numbers
    counts = [f"{int(n)} {word}" for n, word in ((nan, "NaN"), (inf, "inf")) if n]
    if counts:
        return f"with {' and '.join(counts)}"
    if finite and least == most:
        return f"= {least:.6g}"
    return f"in [{least:.6g}, {most:.6g}]"
