"""Compare what a program does with our callbacks and with JAX's."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb

from ._hosts import result_leaves, returned
from ._interpret import Interpreter, Table
from ._programs import Program, forward, is_one_sequence, may_drop_io, may_share_calls, sites

JAX = Table(jax.pure_callback, io_callback, jax.debug.callback)
OURS = Table(jaxcb.pure_callback, jaxcb.io_callback, jaxcb.debug_callback)
QUEUED = OURS._replace(debug=functools.partial(jaxcb.debug_callback, queued=True))


class Outcome(NamedTuple):
    """What happened in a run."""

    error: type[BaseException] | None
    message: str
    results: tuple  # per leaf: shape, dtype, weak type, bytes
    calls: list[tuple]
    returned_values: frozenset[tuple]  # of callbacks, as the program got them: structure, avals
    changed: int  # number of host arguments that changed after the call


@contextlib.contextmanager
def precision(x64: bool) -> Iterator[None]:
    """Enable or disable x64 for the whole process."""
    # Not the jax.enable_x64 context, which applies to this thread only: JAX converts the
    # arguments of a callback on XLA's threads.
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", x64)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def observe(interpreter: Interpreter, function: Any, state: Any) -> Outcome:
    """Call the program once and return its result or error, and the host calls it made."""
    interpreter.calls.clear()
    interpreter.held.clear()
    error, message, results = None, "", ()
    try:
        results = tuple(_facts(x) for x in jax.tree.leaves(function(state)))
    except Exception as raised:
        error, message = type(raised), str(raised)
    jax.block_until_ready(interpreter.kept)
    interpreter.kept.clear()
    jax.effects_barrier()
    changed = sum(array.tobytes() != was for array, was in interpreter.held)
    returned_values = frozenset(interpreter.returned_values)
    return Outcome(error, message, results, list(interpreter.calls), returned_values, changed)


def _facts(x: Any) -> tuple:
    array = np.asarray(x)
    return array.shape, array.dtype.name, bool(jax.typeof(x).weak_type), array.tobytes()


class Reference(NamedTuple):
    """JAX's callbacks, and the io callback that a debug callback of JAX's stands for."""

    table: Table
    io_by_debug: Any  # takes the program before the arguments of an io callback


def expected(program: Program, reference: Reference) -> Outcome:
    """Run the program with JAX's callbacks and return what ours should do.

    JAX drops io callbacks from differentiated loops, but ours run as often as without the gradient.
    In such programs a debug callback, which JAX keeps, replaces every io callback of JAX's, and JAX
    computes its result.
    """
    interpreter = Interpreter(program, reference.table)
    outcome = observe(interpreter, interpreter.function(), interpreter.start())
    if outcome.error is not None or not may_drop_io(program):
        return outcome
    io = functools.partial(reference.io_by_debug, program)
    interpreter = Interpreter(program, reference.table._replace(io=io))
    return observe(interpreter, interpreter.function(), interpreter.start())


def _io_by_debug(
    program: Program, host: Any, declared: Any, *args: Any, ordered: bool, **kwargs: Any
) -> Any:
    (callback,) = [c for c, _ in sites(program.block) if c.name == host.__name__]
    jax.debug.callback(host, *args, ordered=ordered, **kwargs)
    leaves = [jnp.asarray(x) for x in jax.tree.leaves((args, kwargs))]
    return returned(callback, result_leaves(jnp, program, callback, leaves))


WITH_JAX = Reference(JAX, _io_by_debug)


def disagreement(
    program: Program, table: Table = OURS, reference: Reference = WITH_JAX
) -> tuple[Outcome, str | None]:
    """Return the outcome with JAX's callbacks, and how ours differs from it, or None."""
    compare = functools.partial(difference, program, queued=table is QUEUED)
    with precision(program.x64):
        theirs = expected(program, reference)
        interpreter = Interpreter(program, table)
        function, state = interpreter.function(), interpreter.start()
        first = observe(interpreter, function, state)
        if theirs.error is None and first.error is not None and may_drop_io(program):
            theirs = _refused(program, first.error, reference.table) or theirs
            return theirs, None if theirs.error else compare(theirs, first)
        found = compare(theirs, first)
        if found or theirs.error is not None:
            return theirs, found
        with jaxcb.record() as r:
            again = observe(interpreter, function, state)
    found = compare(theirs, again)
    if found:
        return theirs, f"recorded: {found}"
    if len(r.recording) != len(again.calls):
        return theirs, f"{len(r.recording)} calls recorded, {len(again.calls)} made"
    return theirs, None


def _refused(program: Program, error: type[BaseException], table: Table) -> Outcome | None:
    """Return JAX's outcome for the program without the derivatives that drop io callbacks.

    Returns None unless that outcome is `error`.
    """
    interpreter = Interpreter(dataclasses.replace(program, block=forward(program.block)), table)
    outcome = observe(interpreter, interpreter.function(), interpreter.start())
    return outcome if outcome.error is error else None


def difference(
    program: Program, jax_did: Outcome, ours_did: Outcome, *, queued: bool = False
) -> str | None:
    """Return a description of the first difference between two outcomes, or None.

    Args:
        program: the program that was run.
        jax_did: the outcome with JAX's callbacks.
        ours_did: the outcome with ours.
        queued: whether calls of debug callbacks were queued, and so come later than the others.
    """
    if jax_did.error is not ours_did.error:
        return f"JAX raised {jax_did[:2]}, ours {ours_did[:2]}"
    if ours_did.changed:
        return f"{ours_did.changed} arguments changed after the host function had them"
    missing = Counter(jax_did.calls) - Counter(ours_did.calls)
    added = Counter(ours_did.calls) - Counter(jax_did.calls)
    may_share = may_share_calls(program)
    for call in set(added) & set(jax_did.calls):
        if call[0] in may_share:
            del added[call]
    if missing or added:
        return (
            f"{len(jax_did.calls)} calls with JAX, {len(ours_did.calls)} with ours; "
            f"only with JAX: {list(missing.items())[:4]}, only with ours: {list(added.items())[:4]}"
        )
    if jax_did.returned_values != ours_did.returned_values:
        return (
            f"results only with JAX: {jax_did.returned_values - ours_did.returned_values}, "
            f"only with ours: {ours_did.returned_values - jax_did.returned_values}"
        )
    for names in _sequences(program, queued):
        ours, theirs = ([call for call in o.calls if call[0] in names] for o in (ours_did, jax_did))
        if ours != theirs:
            return f"order of {sorted(names)}: {theirs[:6]} with JAX, {ours[:6]} with ours"
    if jax_did.results != ours_did.results:
        return f"results: {jax_did.results} with JAX, {ours_did.results} with ours"
    return None


def _sequences(program: Program, queued: bool) -> Iterator[set[str]]:
    """Yield sets of host functions whose calls have a defined order among each other."""
    found = [callback for callback, _ in sites(program.block)]
    for flavor in ("io", "debug"):
        yield {c.name for c in found if c.ordered and c.flavor == flavor}
    if is_one_sequence(program):
        later = {c.name for c in found if queued and c.flavor == "debug"}
        yield {c.name for c in found} - later
        yield later
