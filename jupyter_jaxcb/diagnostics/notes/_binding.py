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
from ._again import bind_again
from ._choice import numbers_watched
from ._contexts import contexts, is_watching, key, paused
from ._note import Note, Options, next_number
from ._place import Place, find_place
from ._primitives import OWN, linear_p, note_p, watched_p
from ._received import bound_unwatched

_MOST_INPUTS = 4
_MAKES_CONSTANTS = {"broadcast_in_dim", "convert_element_type", "iota"}  # JAX, for itself
_CALLS_USERS = {"custom_jvp_call", "custom_vjp_call", "shard_map"}


def around_bind(
    bind: Callable[..., Any], primitive: Any, args: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    """Bind `primitive`, and watch it if the user's code makes it."""
    if not is_watching():
        bound_unwatched()
        return bind(primitive, *args, **params)
    if not jax_compat.has_rules():
        if primitive in OWN:
            return [*args[: primitive in (watched_p, linear_p)]]
        return bind(primitive, *args, **params)
    frame = sys._getframe(2)
    if jax_compat.evaluates_effects(frame):
        return bind_again(bind, primitive, args, params, frame)
    if primitive in OWN:
        return bind(primitive, *args, **params)
    traced = any(isinstance(x, Tracer) for x in args)
    place = find_place() if traced or primitive.name not in _MAKES_CONSTANTS else None
    if place is None:
        return bind(primitive, *args, **params)
    options, _ = key.value
    known = _Known(place, options, frame)
    names = _names(place, args)
    watched = [known.with_cotangent(x, name) for x, name in zip(args, names, strict=True)]
    before = next_number()
    out = bind(primitive, *watched, **params)
    known.encloses = _encloses(primitive, params, next_number() - before - 1)
    inputs = [(x, name) for x, name in zip(args, names, strict=True) if _is_array(x)]
    is_assigned = bool(place.target) and _wants(place, options)

    def noted(x: Any) -> Any:
        return known.noted(x, inputs, is_assigned)

    if not primitive.multiple_results:
        return noted(out)
    return [noted(x) for x in out] if isinstance(out, (list, tuple)) else out.map(noted)


def _wants(place: Place, options: Options) -> bool:
    of = place.target, place.function, place.file, place.line
    return numbers_watched(options.names, *of) is not None


def note_variable(place: Place, frame: FrameType, x: Any) -> None:
    """Send the numbers of a variable of code that is being traced."""
    options, _ = key.value
    if jax_compat.has_rules():
        _Known(place, options, frame).variable(x)
        if (note := _cotangents.of(x)) is not None:
            note.held_by.append(place.expression)


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


class _Known:
    """What is known of all values of one bind.

    Attributes:
        encloses: whether the operation runs code of the user that is watched too.
    """

    def __init__(self, place: Place, options: Options, frame: FrameType) -> None:
        self._place, self._options, self.encloses = place, options, False
        around, self._all = contexts(frame)
        loops = [context for context in around if context.step is not None]
        self._loops = tuple(context.length for context in loops)
        self._within = tuple(context.number for context in around)
        mask = around[-1].mask if around else None
        self._conditional = mask is not None
        self._steps = [context.step for context in loops] + ([mask] if self._conditional else [])

    def _note(self, **facts: Any) -> Note:
        return Note(
            self._place, self._options, loops=self._loops, within=self._within,
            knows_steps=self._all, conditional=self._conditional, encloses=self.encloses, **facts,
        )  # fmt: skip

    def _bind(self, primitive: Any, note: Note, operands: Sequence[Any]) -> Any:
        arrays = (*operands, *self._steps)
        with paused():
            return primitive.bind(*arrays, axes=((),) * len(arrays), sizes=(), note=note)

    def with_cotangent(self, x: Any, name: str) -> Any:
        """Return `x`, whose cotangent is watched for bad values."""
        if not (_is_array(x) and isinstance(x, Tracer)):
            return x
        return self._bind(watched_p, self._note(rows=False, cotangent_of=name), [x])[0]

    def with_cotangent_of_variable(self, x: Tracer) -> Any:
        """Return `x`, whose cotangent is watched if a variable of the user gets it."""
        note = self._note(rows=True)
        x = self._bind(watched_p, note, [x])[0]
        _cotangents.add(x, note)
        return x

    def noted(self, x: Any, inputs: Sequence[tuple[Any, str]], is_assigned: bool) -> Any:
        """Watch a result for bad values, and the cotangent of a variable; return it."""
        if not (_is_array(x) and isinstance(x, Tracer)):
            return x
        shown = inputs[:_MOST_INPUTS]
        note = self._note(rows=False, names=tuple(name for _, name in shown))
        self._bind(note_p, note, [x, *(value for value, _ in shown)])
        for value, _ in inputs:
            if (result := _results.of(value)) is not None:
                result.used_by.append(note.number)
        if is_assigned and self._options.rows:
            x = self.with_cotangent_of_variable(x)
        _results.add(x, note)
        return x

    def variable(self, x: Any) -> None:
        """Send the numbers of a variable."""
        self._bind(note_p, self._note(rows=self._options.rows, looks_for_bad=False), [x])


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
