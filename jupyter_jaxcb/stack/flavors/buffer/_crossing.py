"""One crossing of a buffer callback, which writes into memory that XLA provides."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.errors import JaxRuntimeError
from jax.tree_util import keystr, tree_flatten_with_path, tree_structure, tree_unflatten

from ....recording import LoweredSite, Recorder, active
from ...call import HostCallback, empty_aligned
from ...dispatch import (
    Adapt,
    CallPlan,
    Crossing,
    Elements,
    ElementSchedule,
    finite_checker,
    looped_calls,
    reporting_interrupts,
    selects_in,
    single_call,
    takes_flat_operands,
    to_arguments,
)
from ...errors import HostCallError, host_error
from ...results import ResultError
from ._borrowed_memory import as_buffers, borrow, reclaim, rescue, still_held
from ._canary import run_checked

# Parameters before the arguments: the outputs, and in front of them XLA's context, as in JAX.
WITHOUT_CONTEXT, WITH_CONTEXT = 1, 2
_CALLS = 64  # kept for each call site: one for each number of gathered elements
# One crossing, given XLA's context, the operands and the outputs.
Cross = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
# Calls the host function, given its body, XLA's context, the operands and the outputs.
Call = Callable[[Callable, Any, Sequence[Any], Sequence[Any]], Any]


def build_buffer_crossing(plan: CallPlan) -> Crossing:
    """Build the function XLA calls with its context and the operand and result buffers."""
    __tracebackhide__ = True
    callback, lowered = plan.callback, plan.lowered
    count = len(lowered.operands)
    cross = _crossing(plan)
    shown = _shown_as(callback)
    if plan.on_device:
        return reporting_interrupts(
            lambda context, *buffers: cross(context, buffers[:count], buffers[count:]),
            lowered,
            callback.host,
        )

    def borrowing(context: Any, *buffers: Any) -> tuple[()]:
        arrays = shown(borrow(buffers, count))
        try:
            cross(context, arrays[:count], arrays[count:])
        except HostCallError as error:
            rescue(host_error(error), arrays)
            raise
        host = callback.host
        held = still_held(arrays)
        if held:
            code = getattr(host.current, "__code__", None)
            reclaim(arrays, held, _names(callback, count), host.name, code)
        return ()

    return reporting_interrupts(borrowing, lowered, callback.host)


def build_eager_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing outside a program, where nothing is borrowed."""
    __tracebackhide__ = True
    callback, lowered, result_dtypes = plan.callback, plan.lowered, plan.result_dtypes
    cross = _crossing(plan)
    shapes = [aval.shape for aval in lowered.results]
    aliases = callback.options.input_output_aliases
    shown = _shown_as(callback)

    def eager(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        outs = list(map(empty_aligned, shapes, result_dtypes))
        for operand, result in aliases:
            outs[result][...] = operands[operand]
        cross(_NO_CONTEXT, shown(_shared(operands, outs, aliases)), shown(outs))
        for n in still_held(outs):  # the host function may write to it again
            outs[n] = outs[n].copy()
        return tuple(outs)

    return eager


class _NoContext:
    """Stands for XLA's execution context outside a program."""

    @property
    def stage(self) -> Any:
        """The stage of a running program."""
        from jax.experimental.buffer_callback import ExecutionStage

        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> Any:
        """Raises the JaxRuntimeError that XLA's context raises on a CPU."""
        raise JaxRuntimeError(
            "UNIMPLEMENTED: XLA FFI GPU context is not available. Only a GPU has a stream: test "
            "jax.default_backend() before you use it."
        )


_NO_CONTEXT = _NoContext()


@selects_in("selected")
def _crossing(plan: CallPlan) -> Cross:
    """Build a crossing over context, operands and outputs that records calls and errors."""
    lowered, select = plan.lowered, plan.selection()
    if select is None:
        schedule = None if lowered.elements is None else ElementSchedule(lowered)
        return _calls(plan, _call_of(plan, lowered), schedule, lowered, plan.recorder_now)
    size = math.prod(level.size for level in lowered.levels)
    call_of = functools.lru_cache(_CALLS)(functools.partial(_call_of, plan))
    call_of(select.site)  # here an error is not one of a call

    def selected(context: Any, operands: Sequence[Any], outs: Sequence[Any]) -> None:
        *arrays, mask = operands
        recorder = plan.recorder_now()
        chosen = select(mask, recorder)
        for out in outs if chosen.size < size else ():
            out[...] = 0  # XLA does not initialize it
        if chosen.size:
            elements = chosen if isinstance(chosen, Elements) else None
            call, written = call_of(chosen.site), chosen.outputs(outs)
            cross = _calls(plan, call, elements, chosen.site, lambda: recorder)
            cross(context, chosen.gather(arrays), written)
            chosen.keep(written, outs)

    return selected


def _call_of(plan: CallPlan, site: LoweredSite) -> Call:
    """Return what calls the host function with the avals of `site`."""
    callback, entry = plan.callback, plan.entry(site)
    count = len(site.host_avals()[0])
    call = _only_writing(callback, count) if entry is None else _entering(entry)
    return _checking(callback, call) if callback.options.check else call


def _entering(entry: Adapt) -> Call:
    """Return a function that calls what `entry` returns instead of the host function."""
    return lambda function, context, operands, outs: entry(function)(operands, outs)


def _calls(
    plan: CallPlan,
    call: Call,
    elements: Elements | None,
    site: LoweredSite,
    recorder_now: Callable[[], Recorder | None],
) -> Cross:
    """Build a crossing that makes one call, or one for each of `elements`.

    Args:
        plan: the plan.
        call: calls the host function.
        elements: the batch elements of looped vmaps; None: there is one call.
        site: has the avals of one call.
        recorder_now: returns the recorder of one crossing.
    """
    aliases = plan.callback.options.input_output_aliases
    host, lowered, on_device = plan.callback.host, plan.lowered, plan.on_device
    _, results = site.host_avals()
    if elements is None:
        shapes, dtypes = [a.shape for a in results], [np.dtype(a.dtype) for a in results]
        finite = None if on_device else finite_checker(shapes, dtypes)

        def single(context: Any, operands: Sequence[Any], outs: Sequence[Any]) -> None:
            def adapt(function: Callable) -> Callable:
                return lambda *shown: call(function, context, operands, outs)

            # What the recorder takes sample values from: it cannot read GPU memory.
            shown = () if on_device else _as_given(operands, aliases)
            written = () if on_device else outs
            check = lambda returned: written  # noqa: E731
            single_call(host, lowered, adapt, check, finite, recorder_now)(*shown)

        return single
    call = _for_element(call, aliases, _shown_as(plan.callback))
    inner, count = [aval.shape for aval in results], lowered.elements

    def looped(context: Any, operands: Sequence[Any], outs: Sequence[Any]) -> None:
        rows = [out.reshape((count, *shape)) for out, shape in zip(outs, inner, strict=True)]
        outputs = _rows_by_call(rows, elements)

        def adapt(function: Callable) -> Callable:
            return lambda *operands: call(function, context, operands, next(outputs))

        written = functools.partial(_Written, rows, elements)
        shown = _as_given(operands, aliases)
        looped_calls(host, lowered, adapt, elements, written, recorder_now)(*shown)

    return looped


def _shown_as(callback: HostCallback) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Return what makes of arrays those that the host function gets: as JAX's, or plain ones."""
    return as_buffers if callback.leading == WITH_CONTEXT else list


def _for_element(
    call: Call, aliases: Sequence[tuple[int, int]], shown: Callable[[Sequence], list]
) -> Call:
    """Return `call` for the arrays of a batch element, as it is given those of a whole call.

    Aliased operands, which a schedule may have copied, share the memory of their outputs.
    """
    return lambda function, context, operands, outs: call(
        function, context, shown(_shared(operands, outs, aliases)), shown(outs)
    )


def _shared(
    operands: Sequence[np.ndarray], outs: Sequence[np.ndarray], aliases: Sequence[tuple[int, int]]
) -> Sequence[np.ndarray]:
    """Return `operands` with each aliased one replaced by a read-only view of its output."""
    shared = list(operands)
    for operand, result in aliases:
        shared[operand] = outs[result].view()
        shared[operand].setflags(write=False)
    return shared


def _as_given(
    operands: Sequence[np.ndarray], aliases: Sequence[tuple[int, int]]
) -> Sequence[np.ndarray]:
    """Return `operands` to record: the aliased ones are copied, as the call overwrites them."""
    if not aliases or active() is None:
        return operands
    kept = list(operands)
    for operand, _ in aliases:
        kept[operand] = kept[operand].copy()
    return kept


class _Written:
    """Collects the outputs of a looped crossing, whose calls write them in place.

    Attributes:
        done: the number of calls that have returned.
    """

    def __init__(self, rows: Sequence[np.ndarray], schedule: Elements) -> None:
        self.done = 0
        self._rows = rows
        self._schedule = schedule

    def so_far(self) -> list[np.ndarray]:
        """Return the outputs of the calls done so far, one row per call."""
        return [rows[self._schedule.order[: self.done]] for rows in self._rows]

    def stack(self, calls: Iterator[Any]) -> list[np.ndarray]:
        """Make all `calls` and return the outputs, one row per call, in call order."""
        for _ in calls:
            self.done += 1
        return [self._schedule.by_call(rows) for rows in self._rows]


def _rows_by_call(rows: Sequence[np.ndarray], schedule: Elements) -> Iterator[tuple]:
    """Yield the outputs of every call, in call order, as views (of scalars too)."""
    order = schedule.order.tolist()
    if not rows:
        return iter([()] * len(order))
    places = [(element, ...) for element in order]
    return zip(*(map(row.__getitem__, places) for row in rows), strict=True)


def _only_writing(callback: HostCallback, count: int) -> Call:
    """Return a function that calls the host function and checks that it returns nothing."""
    call = _passing_arguments(callback, count)
    name = callback.host.name

    def writing(function: Callable, context: Any, operands: Sequence, outs: Sequence) -> None:
        returned = call(function, context, operands, outs)
        if returned is not None:
            raise ResultError(
                f"{name} returned {type(returned).__name__}, but a buffer_callback callback must "
                "not return any values. Write the result into the output array, out[...] = value, "
                "or register the function as pure."
            )

    return writing


def _checking(callback: HostCallback, call: Call) -> Call:
    """Return a function that calls the host function and checks that it writes all outputs."""
    options, name, paths = callback.options, callback.host.name, _paths(callback.out_tree)
    begun = {result for _, result in options.input_output_aliases}
    own = [n for n in range(len(paths)) if n not in begun]

    def checking(function: Callable, context: Any, operands: Sequence, outs: Sequence) -> None:
        run_checked(
            lambda: call(function, context, operands, outs),
            [outs[n] for n in own],
            [paths[n] for n in own],
            name,
            again=not options.has_side_effect and not begun,
        )

    return checking


def _passing_arguments(callback: HostCallback, count: int) -> Call:
    """Return a function that passes the arguments flat, or as the trees they came in."""
    tree: Any = callback.out_tree
    with_context = callback.leading == WITH_CONTEXT
    if takes_flat_operands(callback, count) and tree == tree_structure(0):
        if with_context:
            return lambda function, context, operands, outs: function(context, *outs, *operands)
        return lambda function, context, operands, outs: function(*outs, *operands)
    arguments = to_arguments(callback)

    def call(function: Callable, context: Any, operands: Sequence, outs: Sequence) -> Any:
        args, kwargs = arguments(operands)
        leading = (context,) if with_context else ()
        return function(*leading, tree_unflatten(tree, outs), *args, **kwargs)

    return call


def _names(callback: HostCallback, count: int) -> list[str]:
    """Name the arrays of a crossing for messages: `count` operands, then outputs."""
    static = callback.static.values
    places = tree_unflatten(callback.in_tree, range(callback.in_tree.num_leaves))
    operands = [
        f"{which}{keystr(path)}"
        for which, tree in zip(("args", "kwargs"), places, strict=True)
        for path, place in tree_flatten_with_path(tree)[0]
        if place not in static
    ]
    operands += ["mask"] * (count - len(operands))
    return [*operands, *(f"out{path}" for path in _paths(callback.out_tree))]


def _paths(tree: Any) -> list[str]:
    leaves, _ = tree_flatten_with_path(tree_unflatten(tree, range(tree.num_leaves)))
    return [keystr(path) for path, _ in leaves]
