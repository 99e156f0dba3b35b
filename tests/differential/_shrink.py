"""Shrink a program that shows a disagreement, by greedy removal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from ._programs import Callback, Nest, Program


def shrunk(program: Program, shows: Callable[[Program], bool], budget: int = 150) -> Program:
    """Return a smaller program that still shows the disagreement.

    Args:
        program: the program to shrink.
        shows: whether a program shows the disagreement.
        budget: how many smaller programs to try.
    """
    tried = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(program):
            if tried == budget:
                return program
            tried += 1
            if shows(smaller):
                program = smaller
                progress = True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    for block in _smaller_blocks(program.block):
        if block:
            yield dataclasses.replace(program, block=block)
    yield from _reset(program, ("shapes", "dtypes", "x64", "weak", "jitted"))


def _smaller_blocks(block: tuple) -> Iterator[tuple]:
    for i, step in enumerate(block):
        before, after = block[:i], block[i + 1 :]
        yield (*before, *after)
        if isinstance(step, Callback):
            names = tuple(f.name for f in dataclasses.fields(step) if f.name not in _KEPT)
            for simpler in _reset(step, names):
                yield (*before, simpler, *after)
            continue
        yield from ((*before, *inner, *after) for inner in step.blocks if inner)
        for simpler in (*_reset(step, _OPTIONS), *_smaller_nests(step)):
            yield (*before, simpler, *after)


_KEPT = ("name", "flavor", "method")
_OPTIONS = ("in_axes", "out_axes", "dynamic", "variant", "stopped", "policy")


def _smaller_nests(nest: Nest) -> Iterator[Nest]:
    if nest.size > 1:
        yield dataclasses.replace(nest, size=nest.size - 1)
    for i, inner in enumerate(nest.blocks):
        for block in _smaller_blocks(inner):
            blocks = (*nest.blocks[:i], block, *nest.blocks[i + 1 :])
            yield dataclasses.replace(nest, blocks=blocks)


def _reset(value: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """Yield copies of `value` with one field reset to its default."""
    for field in dataclasses.fields(value):
        if field.name in names and getattr(value, field.name) != field.default:
            yield dataclasses.replace(value, **{field.name: field.default})
