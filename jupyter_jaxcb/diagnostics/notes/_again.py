"""Add loops to the notes of a jaxpr that was traced outside of them.

Equinox and the libraries on it trace the user's function on its own, and evaluate its jaxpr in the
body of a loop. Then the operations that have jaxprs with notes are traced again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr

from ... import jax_compat
from ._contexts import Context, as_body, contexts, original, paused
from ._note import Note
from ._primitives import OWN


def bind_again(
    bind: Callable[..., Any], primitive: Any, args: Any, params: Any, frame: FrameType
) -> Any:
    """Bind an operation of a jaxpr with notes, which `frame` evaluates."""
    around, knows_all = contexts(frame)
    if knows_all and primitive in OWN and _missing(params["note"], around):
        return _with_loops(primitive, args, around, **params)
    trace = _TRACE_AGAIN.get(primitive.name)
    if knows_all and trace and any(_missing(note, around) for note in _notes_in(params)):
        return trace(args, **params)
    return bind(primitive, *args, **params)


def _missing(note: Note, around: Sequence[Context]) -> list[Context]:
    return [context for context in around if context.number not in note.within]


def _notes_in(params: Any) -> Iterator[Note]:
    for value in params.values():
        for found in value if isinstance(value, tuple | list) else (value,):
            for eqn in getattr(getattr(found, "jaxpr", found), "eqns", ()):
                if eqn.primitive in OWN:
                    yield eqn.params["note"]
                else:
                    yield from _notes_in(eqn.params)


def _with_loops(
    primitive: Any, args: Any, around: Sequence[Context], axes: Any, sizes: Any, note: Note
) -> Any:
    """Bind a note with the steps of the loops around it that it does not have."""
    missing, unbatched = _missing(note, around), (None,) * len(sizes)
    loops = [context for context in missing if context.step is not None]
    outer = sum(context.number in note.within for context in around if context.step is not None)
    at = 1 + len(note.names) + outer
    args = [*args[:at], *(context.step for context in loops), *args[at:]]
    axes = [*axes[:at], *(unbatched for _ in loops), *axes[at:]]
    mask = around[-1].mask
    if mask is not None and not note.conditional:
        args, axes = [*args, mask], [*axes, unbatched]
    elif mask is not None and not sizes:
        with paused():
            args[-1] = jnp.logical_and(args[-1], mask)
    lengths = (*note.loops[:outer], *(context.length for context in loops), *note.loops[outer:])
    within = (*note.within, *(context.number for context in missing))
    conditional = note.conditional or mask is not None
    note = dataclasses.replace(note, loops=lengths, within=within, conditional=conditional)
    with paused():
        return primitive.bind(*args, axes=tuple(axes), sizes=sizes, note=note)


def _function(closed: Any) -> Callable[..., Any]:
    """Return what evaluates a jaxpr."""
    jaxpr, consts = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())

    def evaluate(*args: Any) -> list:
        return eval_jaxpr(jaxpr, consts, *args)

    return as_body(evaluate)


def _jit(args: Any, *, jaxpr: Any, inline: bool = False, **params: Any) -> Any:
    return jax.jit(_function(jaxpr), inline=inline)(*args)


def _cond(args: Any, *, branches: Any, **params: Any) -> Any:
    index, *operands = args
    return original("switch")(index, [_function(branch) for branch in branches], *operands)


def _scan(args: Any, **params: Any) -> Any:
    evaluate = _function(params["jaxpr"])
    consts, init, arrays = jax_compat.scan_operands(args, params)

    def body(carry: Any, xs: Any) -> Any:
        out = evaluate(*consts, *carry, *xs)
        return out[: len(init)], out[len(init) :]

    carry, ys = original("scan")(
        body, init, arrays, params["length"], params["reverse"], params["unroll"]
    )
    return [*carry, *ys]


def _while(
    args: Any, *, cond_jaxpr: Any, cond_nconsts: int, body_jaxpr: Any, body_nconsts: int,
    **params: Any,
) -> Any:  # fmt: skip
    first = cond_nconsts + body_nconsts
    condition, body = _function(cond_jaxpr), _function(body_jaxpr)
    return original("while_loop")(
        lambda carry: condition(*args[:cond_nconsts], *carry)[0],
        lambda carry: body(*args[cond_nconsts:first], *carry),
        list(args[first:]),
    )


def _checkpoint(args: Any, *, jaxpr: Any, prevent_cse: Any, policy: Any, **params: Any) -> Any:
    return jax.checkpoint(_function(jaxpr), prevent_cse=prevent_cse, policy=policy)(*args)


_TRACE_AGAIN = {
    "jit": _jit, "pjit": _jit, "cond": _cond, "scan": _scan, "while": _while,
    "checkpoint": _checkpoint, "remat2": _checkpoint,
}  # fmt: skip
