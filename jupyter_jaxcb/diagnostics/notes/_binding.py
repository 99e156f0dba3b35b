"""Watch the results and the cotangents of the user's expressions, while JAX traces them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import jax.numpy as jnp
from jax.core import Tracer

from ... import jax_compat
from ._context import is_watching, key, paused
from ._note import Note, next_number
from ._options import numbers_watched
from ._primitives import NUMBERING, OWN, bind_note, linear_p, note_p, watched_p
from ._source import Place, find_place
from ._store import receiver

_MOST_INPUTS = 4
_MAKES_CONSTANTS = {"broadcast_in_dim", "convert_element_type", "iota"}  # JAX, for itself
_CALLS_USERS = {"custom_jvp_call", "custom_vjp_call", "shard_map"}


class _Notes:
    """The notes of the values that are alive while JAX traces; tracers have no hash."""

    def __init__(self) -> None:
        self._notes: dict[int, tuple[weakref.ref, Note]] = {}

    def add(self, x: Tracer, note: Note) -> None:
        at = id(x)
        self._notes[at] = weakref.ref(x, lambda _: self._notes.pop(at, None)), note

    def of(self, x: Any) -> Note | None:
        alive, note = self._notes.get(id(x), (lambda: None, None))
        return note if alive() is x else None


_results, _cotangents = _Notes(), _Notes()


def around_bind(
    bind: Callable[..., Any], primitive: Any, args: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    """Bind `primitive`, and watch it if the user's code makes it."""
    if not is_watching():
        if (store := receiver()) is not None:
            store.bound_unwatched()
        return bind(primitive, *args, **params)
    if not jax_compat.has_rules():
        if primitive in OWN:
            return [*args[: primitive in (watched_p, linear_p)]]
        return bind(primitive, *args, **params)
    frame = sys._getframe(2)
    if primitive in OWN or jax_compat.evaluates_effects(frame):
        return bind(primitive, *args, **params)
    more = 0  # results
    if jax_compat.begins_loop(frame):
        with paused():
            args, params, more = NUMBERING.of(primitive, args, params)
    traced = any(isinstance(x, Tracer) for x in args)
    place = find_place() if traced or primitive.name not in _MAKES_CONSTANTS else None
    if place is None:
        out = bind(primitive, *args, **params)
        return out[more:] if more else out
    return _watched(bind, primitive, args, params, place, frame, more)


def _watched(
    bind: Callable[..., Any], primitive: Any, args: Sequence[Any], params: dict[str, Any],
    place: Place, frame: FrameType, more: int,
) -> Any:  # fmt: skip
    """Bind an operation of the user; watch its results, and the cotangents of its operands."""
    options, lost = key.value, _lost(frame)
    names = _names(place, args)
    watched = [
        _with_cotangent(x, Note(place, options, rows=False, cotangent_of=name, lost=lost))
        for x, name in zip(args, names, strict=True)
    ]
    before = next_number()
    out = bind(primitive, *watched, **params)
    encloses = _encloses(primitive, params, next_number() - before - 1)
    inputs = [(x, name) for x, name in zip(args, names, strict=True) if _is_array(x)]
    shown = inputs[:_MOST_INPUTS]
    shown_names = tuple(name for _, name in shown)
    of = place.target, place.function, place.file, place.line
    is_assigned = bool(place.target) and numbers_watched(options.names, *of) is not None

    def noted(x: Any) -> Any:
        """Watch a result for bad values, and the cotangent of a variable; return it."""
        if not (_is_array(x) and isinstance(x, Tracer)):
            return x
        note = Note(place, options, False, names=shown_names, encloses=encloses, lost=lost)
        bind_note(note_p, note, x, *(value for value, _ in shown))
        for value, _ in inputs:
            if (result := _results.of(value)) is not None:
                result.used_by.append(note.number)
        if is_assigned and options.rows:
            held = Note(place, options, rows=True, encloses=encloses, lost=lost)
            x = _with_cotangent(x, held)
            _cotangents.add(x, held)
        _results.add(x, note)
        return x

    if not primitive.multiple_results:
        return noted(out)
    if isinstance(out, (list, tuple)):
        return [noted(x) for x in out[more:]]
    return out.map(noted)


def note_variable(place: Place, frame: FrameType, x: Any) -> None:
    """Send the numbers of a variable of code that is being traced."""
    if jax_compat.has_rules():
        rows, lost = key.value.rows, _lost(frame)
        bind_note(note_p, Note(place, key.value, rows, looks_for_bad=False, lost=lost), x)
        if (note := _cotangents.of(x)) is not None:
            note.held_by.append(place.expression)


def _with_cotangent(x: Any, note: Note) -> Any:
    """Return `x`, whose cotangent is watched."""
    return bind_note(watched_p, note, x)[0] if _is_array(x) and isinstance(x, Tracer) else x


def _lost(frame: FrameType) -> list[bool]:
    """Return the list that says whether what is traced may be in loops that are not known."""
    return [] if jax_compat.knows_loops(frame) else [True]


def _encloses(primitive: Any, params: dict[str, Any], notes: int) -> bool:
    """Return whether an operation runs watched code: its jaxprs have the effect of a note.

    Args:
        primitive: the operation.
        params: its parameters.
        notes: how many notes its bind made, which tells it of operations that call functions.
    """
    if primitive.name in _CALLS_USERS:
        return notes > 0
    jaxprs = [params.get(name) for name in ("jaxpr", "body_jaxpr", "cond_jaxpr", "call_jaxpr")]
    return any(getattr(x, "effects", ()) for x in (*jaxprs, *params.get("branches", ())))


def _is_array(x: Any) -> bool:
    """Return whether `x` is an array of real or complex numbers."""
    kind = type(getattr(x, "aval", None)).__name__ == "ShapedArray"
    return kind and jnp.issubdtype(x.dtype, jnp.inexact)


def _names(place: Place, args: Sequence[Any]) -> list[str]:
    """Return what the arguments of an operation are called in the user's expression."""
    names, count = list(place.operands), len(args)
    if len(names) == count + 1:
        names = names[1:] if place.is_call else names[:1]
    if len(names) != count:
        names = [f"operand {place}" for place in range(1, count + 1)]
    return names
