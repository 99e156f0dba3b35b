"""The operations that watching adds to a program; none changes a value.

``note_p`` looks at a value of the forward pass. ``watched_p`` is the identity; its derivative is
``linear_p``, the identity too, whose transpose looks at the cotangent. ``send_p`` makes the host
call. The operands of the first three are the value, the inputs of its expression, the steps of the
loops around it, and the mask, if there is one.

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
from ._contexts import paused
from ._note import Note
from ._on_host import Suspects, is_readable
from ._received import Block, Facts
from ._reductions import (
    MOST_ELEMENTS,
    MOST_SUMMED,
    Layout,
    numbers_in,
    rarely,
    send_if_bad,
    sign_of,
    values_sent,
)

note_p = jax_compat.Primitive("jaxcb_note")
watched_p = jax_compat.Primitive("jaxcb_watched")
linear_p = jax_compat.Primitive("jaxcb_watched_linear")
send_p = jax_compat.Primitive("jaxcb_send")
OWN = (note_p, watched_p, linear_p, send_p)


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


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
    return [primals[0]], _tangents(primals, tangents, params)


def _linear_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
    return linear_p.bind(*primals, **params), _tangents(primals, tangents, params)


def _tangents(primals: Any, tangents: Any, params: Any) -> list:
    # What `jax.linearize` returns must not hold steps: optimistix compares it with that of another
    # loop.
    if type(tangents[0]) is jax_compat.ad.Zero or jax_compat.is_linearizing(sys._getframe()):
        return [tangents[0]]
    return linear_p.bind(tangents[0], *primals[1:], **params)


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
    ctx, operands, axes, facts = _with_shard(ctx, operands, axes, sizes, note)
    layout = Layout(len(note.names), len(facts.note.loops), note.conditional, axes, sizes)

    with paused():
        if note.looks_for_bad:
            _look(ctx, operands, facts, layout)
        if note.rows:
            _send_numbers(ctx, operands, facts, layout)
    return []


def _with_shard(ctx: Any, operands: Any, axes: Any, sizes: Any, note: Note) -> tuple:
    """Return context, operands, their axes, and facts, with the number of the shard as a step.

    It is that of a loop over the shards, which is outside of all others.
    """
    shards = 1
    if jax_compat.shard_count(ctx) > 1:
        shards = jax_compat.times_called(ctx, everywhere=True)  # of this process
    if shards == 1:
        return ctx, operands, axes, _facts(note, ctx, axes[0], sizes, 1)
    at = 1 + len(note.names)
    note = dataclasses.replace(note, loops=(shards, *note.loops))
    operands = (*operands[:at], jax_compat.shard_number(ctx), *operands[at:])
    axes = (*axes[:at], (None,) * len(sizes), *axes[at:])
    avals = [*ctx.avals_in[:at], SHARD_NUMBER, *ctx.avals_in[at:]]
    ctx = dataclasses.replace(ctx, avals_in=avals)
    return ctx, operands, axes, _facts(note, ctx, axes[0], sizes, shards)


def _look(ctx: Any, operands: Sequence[Any], facts: Facts, layout: Layout) -> None:
    """Send a value to the host if it is bad."""
    bad = facts.note.options.bad
    if is_readable(ctx, bad, layout):
        brief, places = layout.of_value()
        own = dataclasses.replace(ctx, avals_in=[ctx.avals_in[at] for at in places])
        of = [operands[at] for at in places]
        (sign,) = _lower(own, of, lambda *arrays: [sign_of(bad, brief, *arrays)])
        vectors, avals = _flat(operands, ctx.avals_in)
        own = dataclasses.replace(ctx, avals_in=avals, avals_out=[], tokens_out=None)
        call = lower_joined_call(own, *vectors, make=Suspects, when=sign)
        if call is not None:
            call.values.append((facts, layout, [aval.shape for aval in ctx.avals_in]))
            return
    _lower(ctx, operands, lambda *arrays: send_if_bad(send_p.bind, facts, layout, *arrays))


def _flat(operands: Sequence[Any], avals: Sequence[Any]) -> tuple[list, list]:
    """Return small operands as vectors, as which they are summed: else XLA computes each twice."""
    pairs = zip(operands, avals, strict=True)
    found = [jax_compat.flat(*one) if one[1].size <= MOST_SUMMED else one for one in pairs]
    return [value for value, _ in found], [aval for _, aval in found]


def _send_numbers(ctx: Any, operands: Sequence[Any], facts: Facts, layout: Layout) -> None:
    options = facts.note.options
    if options.every > 1 and facts.note.loops:
        send = functools.partial(send_p.bind, call=_block_of(facts))
        _lower(ctx, operands, lambda *arrays: rarely(options.every, send, options, layout, *arrays))
    else:
        (numbers,) = _lower(ctx, operands, lambda *arrays: [numbers_in(options, layout, *arrays)])
        _send(ctx, numbers, facts)


def _lower(ctx: Any, operands: Sequence[Any], function: Any) -> Any:
    """Add a function of the operands to the program; return the IR values of its results."""
    return jax_compat.mlir.lower_fun(function)(ctx, *operands)


def _block_of(facts: Facts) -> Block:
    block = Block()
    block.facts.append(facts)
    return block


def _facts(note: Note, ctx: Any, axes: Any, sizes: Any, shards: int) -> Facts:
    aval = ctx.avals_in[0]
    own = [a for a in axes if a is not None]
    shape = tuple(size for place, size in enumerate(aval.shape) if place not in own)
    count = math.prod(sizes)
    is_wide = aval.dtype in (np.float64, np.complex128)
    elements = count if count <= MOST_ELEMENTS else 1
    batch = tuple(reversed(sizes))
    counts = jax_compat.device_count, jax_compat.shard_count, jax_compat.group_count
    is_alone = all(count(ctx) == 1 for count in counts)
    values = values_sent(shape, sizes)
    dtype = str(aval.dtype)
    return Facts(note, shape, dtype, batch, elements, is_wide, is_alone, shards, values)


def _send(ctx: Any, value: Any, facts: Facts) -> None:
    """Add the numbers of a value to what its block sends."""
    aval = jax_compat.shaped_array((facts.elements, facts.size // facts.elements), np.dtype("i4"))
    ctx = dataclasses.replace(ctx, avals_in=[aval], avals_out=[], tokens_out=None)
    block = lower_joined_call(ctx, value, make=Block)
    if block is None:
        block = Block()
        lower_plain_call(ctx, value, call=block, bind=functools.partial(send_p.bind, call=block))
    block.facts.append(facts)


def _lower_send(ctx: Any, *operands: Any, call: Any) -> Any:
    return lower_plain_call(
        ctx, *operands, call=call, bind=functools.partial(send_p.bind, call=call)
    )


for _primitive in OWN:
    _primitive.multiple_results = True
for _primitive in (note_p, send_p):
    _primitive.def_effectful_abstract_eval(_silent_abstract)
    _primitive.def_impl(functools.partial(jax_compat.apply_primitive, _primitive))
for _primitive in (watched_p, linear_p):
    _primitive.def_abstract_eval(lambda aval, *others, **params: [aval])
    _primitive.def_impl(lambda value, *others, **params: [jnp.asarray(value)])
    jax_compat.mlir.register_lowering(_primitive, lambda ctx, value, *others, **params: [value])
for _primitive in (note_p, watched_p, linear_p):
    jax_compat.register_batching(_primitive, _batch(_primitive))
jax_compat.ad.primitive_jvps[note_p] = _note_jvp
jax_compat.ad.primitive_jvps[watched_p] = _jvp
jax_compat.ad.primitive_jvps[linear_p] = _linear_jvp
jax_compat.ad.primitive_transposes[note_p] = _no_cotangents
jax_compat.ad.primitive_transposes[linear_p] = _transpose
jax_compat.ad.primitive_transposes[watched_p] = _transpose  # of a tangent in a rule of the user
jax_compat.stay_in_loops(note_p)
jax_compat.partial_eval_jaxpr_custom_rules[note_p] = _partial_eval_custom
jax_compat.leaves_references_as_they_are(note_p)
jax_compat.mlir.register_lowering(note_p, _lower_note, cacheable=False)
jax_compat.mlir.register_lowering(send_p, _lower_send, cacheable=False)
