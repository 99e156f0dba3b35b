"""Find the predicates that an optimized program evaluates before their loop and in it.

JAX evaluates a predicate with an ordered effect once before its loop, and again in each step. XLA
may remove the loop, or keep it and move a call out of it, and then the program has one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from ._evidence import Evidence, may_be_elided
from ._hlo import Module
from ._hoisting import before_loops, depths
from ._paths import Path, Place
from ._protobuf import Message, Span

# Field numbers of XLA's hlo.proto.
_COMPUTATIONS = 3  # of HloModuleProto
_INSTRUCTIONS, _COMPUTATION, _ROOT = 2, 5, 6  # of HloComputationProto
_NAME, _OPCODE, _LITERAL, _TUPLE_INDEX = 1, 2, 8, 13  # of HloInstructionProto
_ID, _OPERANDS, _CALLED = 35, 36, 38
_BOOLS = 2  # of LiteralProto
_LOOP = b"\x12\x05while"  # the field of the opcode


def effects_in_predicates(kept: Sequence[Path]) -> list[Path]:
    """Return all paths of the binds with side effects of which one is in such a predicate.

    They may be binds of JAX's own API, also while these are not observed.
    """
    inside = {p.bind for p in kept if p.predicates and not may_be_elided(p.bind.site)}
    return [path for path in kept if path.bind in inside]


def predicates(effects: Sequence[Evidence], read: Callable[[], bytes]) -> frozenset[Place]:
    """Return the predicates that the optimized program evaluates before their loop and in it.

    XLA does not move, repeat or deduplicate calls with side effects. So if all copies of such a
    call are in the program, each predicate around it is evaluated in its loop. Names in the
    program do not tell, because JAX gives several loops the same.

    Args:
        effects: the evidence about the binds with side effects that are in predicates.
        read: returns the program, a serialized `HloModuleProto`.
    """
    complete = [seen for seen in effects if _has_all_copies(seen)]
    if not complete:
        return frozenset()
    try:
        never = frozenset(_never_entered(read()))
    except Exception:  # a later JAX or XLA may differ in any way
        return frozenset()
    return frozenset(
        place
        for seen in complete
        if never.isdisjoint(step.name for one in seen.instructions or () for step in one.around)
        for path in seen.kept
        for place in path.predicates
    )


def _has_all_copies(seen: Evidence) -> bool:
    if seen.instructions is None:
        return False
    around, deepest = depths(seen)
    return around == sorted([*deepest, *before_loops(seen)])


def _never_entered(module: bytes) -> Iterator[str]:
    """Yield the names of the loops whose carry begins with a predicate that is false.

    XLA keeps such loops if there are side effects in them.
    """
    spans = Module(module).fields.spans(_COMPUTATIONS)
    parts = {part.number: part for part in (_Computation(module, span) for span in spans)}
    for span, part in zip(spans, parts.values(), strict=True):
        if module.find(_LOOP, *span) < 0:
            continue
        for one in part.instructions.values():
            if one.text(_OPCODE) == "while":
                _, condition = one.numbers(_CALLED)
                if _begins_false(part, one, parts[condition]):
                    yield one.text(_NAME)


class _Computation:
    """A computation of a program; its instructions are read on demand."""

    def __init__(self, data: bytes, span: Span) -> None:
        self._fields = Message(data, span)
        self.number = self._fields.number(_COMPUTATION)
        self.root = self._fields.number(_ROOT)

    @functools.cached_property
    def instructions(self) -> dict[int | None, Message]:
        """Its instructions, by their numbers."""
        return {one.number(_ID): one for one in self._fields.messages(_INSTRUCTIONS)}

    def operand(self, of: Message, index: int = 0) -> Message:
        """Return an operand of one of its instructions."""
        return self.instructions[of.numbers(_OPERANDS)[index]]


def _begins_false(around: _Computation, loop: Message, condition: _Computation) -> bool:
    """Return whether the condition of `loop` is an element of its carry that begins as false."""
    root, carry = condition.instructions[condition.root], around.operand(loop)
    if (root.text(_OPCODE), carry.text(_OPCODE)) != ("get-tuple-element", "tuple"):
        return False
    first = around.operand(carry, root.number(_TUPLE_INDEX) or 0)
    while first.text(_OPCODE) == "copy":
        first = around.operand(first)
    return first.text(_OPCODE) == "constant" and first.message(_LITERAL).numbers(_BOOLS) == [0]
