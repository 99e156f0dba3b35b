"""The operations that watching adds to a program; none changes a value.

``note_p`` looks at a value of the forward pass. ``watched_p`` is the identity; its derivative is
``linear_p``, the identity too, whose transpose looks at the cotangent. ``send_p`` makes the host
call. The operands of the first three are the value, the inputs of its expression, and those for
the loops and branches around it.

A checkpoint computes the forward pass twice, and only the first time is noted.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import jax_compat
from ...stack.lowering import SHARD_NUMBER, lower_joined_call, lower_plain_call
from ._bad import MOST_SUMMED, Suspects, is_readable, send_if_bad, sign_of
from ._context import paused
from ._note import Layout, Note
from ._numbers import MOST_ELEMENTS, numbers_in, rarely, values_sent
from ._store import Block, Facts

note_p = jax_compat.Primitive("jaxcb_note")
watched_p = jax_compat.Primitive("jaxcb_watched")
linear_p = jax_compat.Primitive("jaxcb_watched_linear")
send_p = jax_compat.Primitive("jaxcb_send")
OWN = (note_p, watched_p, linear_p, send_p)


def bind_note(primitive: Any, note: Note, *operands: Any) -> Any:
    """Bind one of the operations, outside of vmap."""
    with paused():
        return primitive.bind(*operands, axes=((),) * len(operands), sizes=(), note=note)


def _add(params: dict[str, Any], around: jax_compat.Around | None) -> tuple[int, dict[str, Any]]:
    """Add the operands for loops and branches around a note, see `jax_compat.Add`."""
    note: Note = params["note"]
    first = 1 + len(note.names)
    if around is None:
        note.lost.append(True)
        return first, params
    unbatched = ((None,) * len(params["sizes"]),) * len(around)
    axes = (*params["axes"][:first], *unbatched, *params["axes"][first:])
    note = dataclasses.replace(note, around=(*around, *note.around))
    return first, params | {"note": note, "axes": axes}


def _mute(params: dict[str, Any]) -> dict[str, Any]:
    return params | {"note": dataclasses.replace(params["note"], rows=False, looks_for_bad=False)}


NUMBERING = jax_compat.Numbering(OWN, _add, _mute)


def _silent_abstract(*avals: Any, **params: Any) -> tuple[list, set]:
    return [], {jax_compat.jax_effect("debug", False)}


def _note_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
    return note_p.bind(*primals, **params), []


def _partial_eval_custom(
    saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: Any
) -> Any:
    """Keep the note only where the value is computed first, and not in the second pass."""
    if any(unknown):
        residuals = [v for v, on in zip(eqn.invars, instantiated, strict=True) if not on]
        return None, eqn, [], [], residuals
    return eqn, None, [], [], []


def _no_cotangents(cotangents: Any, *args: Any, **params: Any) -> list[None]:
    return [None for _ in args]


def _batch(primitive: Any) -> Any:
    def rule(
        args: Any, dims: Any, *, axis_name: str, axes: Any, sizes: Any, note: Note
    ) -> tuple[Any, Any]:
        (size,) = {x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None}
        moved = tuple(
            (*old, None) if d is None else (*(None if a is None else a + (a >= d) for a in old), d)
            for old, d in zip(axes, dims, strict=True)
        )
        out = primitive.bind(*args, axes=moved, sizes=(*sizes, size), note=note)
        return out, [dims[0]] * len(out)

    return rule


def _jvp(primitive: Any) -> Any:
    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
        is_first = primitive is watched_p
        out = [primals[0]] if is_first else primitive.bind(*primals, **params)
        tangent = tangents[0]
        # What `jax.linearize` returns must not hold notes: optimistix compares it with that of
        # another loop.
        is_zero = type(tangent) is jax_compat.ad.Zero
        if is_zero or jax_compat.is_linearizing(sys._getframe()):
            return out, [tangent]
        return out, linear_p.bind(tangent, *primals[1:], **params)

    return rule


def _transpose(cotangents: Any, value: Any, *others: Any, note: Note, **params: Any) -> list:
    (cotangent,) = cotangents
    is_other = note.rows and not note.held_by  # a value from which a function computes a variable
    if type(cotangent) is not jax_compat.ad.Zero and not is_other:
        with paused():
            note_p.bind(cotangent, *others, note=note.backward(), **params)
    return [cotangent, *(None for _ in others)]


def _lower_note(ctx: Any, *operands: Any, axes: Any, sizes: Any, note: Note) -> Any:
    if jax_compat.is_for_export(ctx) or 0 in sizes or not ctx.avals_in[0].size:
        return []  # an exported program leaves this process
    shards = 1
    if jax_compat.shard_count(ctx) > 1:
        shards = jax_compat.times_called(ctx, everywhere=True)  # of this process
    if shards > 1:  # the number of the shard is the step of a loop outside of all others
        first, params = _add({"axes": axes, "sizes": sizes, "note": note}, (shards,))
        axes, note = params["axes"], params["note"]
        operands = (*operands[:first], jax_compat.shard_number(ctx), *operands[first:])
        avals = [*ctx.avals_in[:first], SHARD_NUMBER, *ctx.avals_in[first:]]
        ctx = dataclasses.replace(ctx, avals_in=avals)
    facts = _facts(note, ctx, axes[0], sizes, shards)
    layout = Layout(len(note.names), note.around, axes, sizes)
    with paused():
        if note.looks_for_bad:
            _look(ctx, operands, facts, layout)
        if note.rows:
            _send_numbers(ctx, operands, facts, layout)
    return []


def _facts(note: Note, ctx: Any, axes: Any, sizes: Any, shards: int) -> Facts:
    aval, count = ctx.avals_in[0], math.prod(sizes)
    shape = tuple(size for axis, size in enumerate(aval.shape) if axis not in axes)
    counts = jax_compat.device_count, jax_compat.shard_count, jax_compat.group_count
    return Facts(
        note, shape, str(aval.dtype), batch=tuple(reversed(sizes)), shards=shards,
        elements=count if count <= MOST_ELEMENTS else 1,
        is_wide=aval.dtype in (np.float64, np.complex128),
        can_stop=all(count(ctx) == 1 for count in counts), values=values_sent(shape, sizes),
    )  # fmt: skip


def _look(ctx: Any, operands: Sequence[Any], facts: Facts, layout: Layout) -> None:
    """Send a value to the host if it is bad."""
    bad = facts.note.options.bad
    if is_readable(ctx, bad, layout):
        brief, numbers = layout.of_value()
        own = dataclasses.replace(ctx, avals_in=[ctx.avals_in[n] for n in numbers])
        of = [operands[n] for n in numbers]
        (sign,) = _lower(own, of, lambda *arrays: [sign_of(bad, brief, *arrays)])
        # Small operands are summed as vectors: else XLA computes each twice.
        pairs = [*zip(operands, ctx.avals_in, strict=True)]
        pairs = [jax_compat.flat(*p) if p[1].size <= MOST_SUMMED else p for p in pairs]
        avals = [aval for _, aval in pairs]
        own = dataclasses.replace(ctx, avals_in=avals, avals_out=[], tokens_out=None)
        call = lower_joined_call(own, *(x for x, _ in pairs), make=Suspects, when=sign)
        if call is not None:
            call.values.append((facts, layout, [aval.shape for aval in ctx.avals_in]))
            return
    _lower(ctx, operands, lambda *arrays: send_if_bad(send_p.bind, facts, layout, *arrays))


def _send_numbers(ctx: Any, operands: Sequence[Any], facts: Facts, layout: Layout) -> None:
    options = facts.note.options
    if options.every > 1 and facts.note.loops:
        send = functools.partial(send_p.bind, call=Block(facts))
        _lower(ctx, operands, lambda *arrays: rarely(options.every, send, options, layout, *arrays))
        return
    (numbers,) = _lower(ctx, operands, lambda *arrays: [numbers_in(options, layout, *arrays)])
    aval = jax_compat.shaped_array((facts.elements, facts.size // facts.elements), np.dtype("i4"))
    ctx = dataclasses.replace(ctx, avals_in=[aval], avals_out=[], tokens_out=None)
    block = lower_joined_call(ctx, numbers, make=Block)
    if block is None:
        _lower_send(ctx, numbers, call=Block(facts))
    else:
        block.facts.append(facts)


def _lower(ctx: Any, operands: Sequence[Any], function: Any) -> Any:
    """Add a function of the operands to the program; return the IR values of its results."""
    return jax_compat.mlir.lower_fun(function)(ctx, *operands)


def _lower_send(ctx: Any, *operands: Any, call: Any) -> Any:
    bind = functools.partial(send_p.bind, call=call)
    return lower_plain_call(ctx, *operands, call=call, bind=bind)


for _primitive in OWN:
    _primitive.multiple_results = True
for _primitive in (note_p, send_p):
    _primitive.def_effectful_abstract_eval(_silent_abstract)
    _primitive.def_impl(functools.partial(jax_compat.apply_primitive, _primitive))
for _primitive in (watched_p, linear_p):
    _primitive.def_abstract_eval(lambda aval, *others, **params: [aval])
    _primitive.def_impl(lambda value, *others, **params: [jnp.asarray(value)])
    jax_compat.mlir.register_lowering(_primitive, lambda ctx, value, *others, **params: [value])
    jax_compat.ad.primitive_jvps[_primitive] = _jvp(_primitive)
    # That of `watched_p` transposes a tangent in a rule of the user.
    jax_compat.ad.primitive_transposes[_primitive] = _transpose
for _primitive in (note_p, watched_p, linear_p):
    jax_compat.register_batching(_primitive, _batch(_primitive))
jax_compat.ad.primitive_jvps[note_p] = _note_jvp
jax_compat.ad.primitive_transposes[note_p] = _no_cotangents
jax_compat.stay_in_loops(note_p)
jax_compat.partial_eval_jaxpr_custom_rules[note_p] = _partial_eval_custom
jax_compat.leaves_references_as_they_are(note_p)
jax_compat.mlir.register_lowering(note_p, _lower_note, cacheable=False)
jax_compat.mlir.register_lowering(send_p, _lower_send, cacheable=False)
