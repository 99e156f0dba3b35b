"""One crossing whose host calls run in an executor.

`SpreadCrossing` is what XLA calls. Its `_Run` submits chunks of batch elements, waits for them, and
decides which error the program gets.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import itertools
import math
import os
import queue
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jupyter_jaxcb_worker import (
    Chunk,
    Numbers,
    Task,
    Worker,
    in_worker_thread,
    received,
    restored,
    run_chunk,
)

from ...recording import LoweredSite, Recorder
from ...stack.dispatch import (
    CallPlan,
    Crossing,
    Elements,
    ElementSchedule,
    Parts,
    Selection,
    facts_of,
    parts_of_crossing,
    record_values,
    reporting_interrupts,
    to_arguments,
)
from ...stack.errors import EndedError, NotCalledError, add_note, describe, is_a
from ...stack.interrupt import NOT_CALLED, end_calls, refuse_call, report_failure
from ...stack.options import Decides, Options, capability
from ...stack.results import ResultChecker, shown
from ...stack.trace import CROSSINGS, WAITING
from ..lint import warn_of_worker_state
from ._options import leaves_process
from ._pools import ExecutorError, WorkerLostError, has_lost_worker, needed, pool_of

_POLL_SECONDS = 0.05
_SHARE = 4  # chunks for each worker, if the user gives no size; as in multiprocessing's Pool.map
_NAMED = 8  # batch elements that are named in a message
RUN_CHUNK = run_chunk.__code__


def build_spread_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that runs the host calls in the callback's executor.

    Raises:
        ExecutorError: if the executor cannot be reached.
        TypeError: if the function or one of its arguments cannot be pickled.
    """
    __tracebackhide__ = True
    callback, lowered, options = plan.callback, plan.lowered, plan.callback.options
    if pool_of(options.executor).travels:
        name = callback.host.name
        _pickled(callback.host.current, name, options)
        for value in callback.static.values.values():
            _pickled(value, f"the argument {shown(value)} of {name}", options)

    def make_calls(
        parts: Parts, chosen: Selection, operands: Sequence[np.ndarray], recorder: Recorder | None
    ) -> tuple[np.ndarray, ...]:
        elements = chosen if isinstance(chosen, Elements) else None
        return SpreadCrossing(plan, parts, chosen.site, elements, chosen.numbers).cross(*operands)

    select = plan.selection()
    if select is not None:
        return select.crossing(make_calls)
    parts = parts_of_crossing(
        callback, lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry()
    )
    schedule, numbers = None, None
    if lowered.elements is not None:
        schedule = ElementSchedule(lowered)
        # A range is small to send.
        numbers = schedule.order if len(lowered.levels) > 1 else range(schedule.size)
    crossing = SpreadCrossing(plan, parts, lowered, schedule, numbers)
    return reporting_interrupts(crossing.cross, lowered, callback.host)


def _warn(function: Any, given: Options, registered: bool) -> None:
    if given.flavor == "io" and leaves_process(given.executor):
        warn_of_worker_state(function, given.spelled("executor"))


capability(
    Decides.WHERE,
    lambda given: given.executor is not None,
    crossing=build_spread_crossing,
    look=_warn,
)


class SpreadCrossing:
    """What the crossings of one site with one schedule share; selected elements have their own.

    Args:
        plan: the plan.
        parts: the parts of the crossing.
        site: has the avals of the results together.
        schedule: the batch element of each call; None for a single call.
        numbers: the batch element of each call, or those of a single call; None: all.
    """

    def __init__(
        self,
        plan: CallPlan,
        parts: Parts,
        site: LoweredSite,
        schedule: Elements | None,
        numbers: Numbers | None,
    ) -> None:
        callback = plan.callback
        self.host, self.lowered, self.options = callback.host, plan.lowered, callback.options
        self.parts, self.schedule = parts, schedule
        self.order = np.array([-1], np.int32) if schedule is None else schedule.order
        self.facts = facts_of(plan.lowered, 0, numbers)
        self.structured = to_arguments(callback)
        executor, self._recorder_now = self.options.executor, plan.recorder_now
        self.pool = None if isinstance(executor, str) else pool_of(executor)
        self._shapes = [aval.shape for aval in site.results]

    def cross(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """The function XLA calls. Other threads read its local variables, see `_code_owner`."""
        host, lowered, schedule = self.host, self.lowered, self.schedule
        refuse_call(lowered, host)
        recorder, run = self._recorder_now(), None
        before = host.calls
        host.calls = before + self.order.size
        guard = bytearray(b"\1")  # an interrupt clears it
        try:
            run = _Run(self, operands, recorder, before)
            run.wait(guard)
        except BaseException as error:
            if run is not None and is_a(error, KeyboardInterrupt, EndedError, NotCalledError):
                run.end_calls(error)
            failed = None if run is None else run.failed
            call, is_known = failed[::2] if failed and failed[1] is error else (0, False)
            element, arguments = None, operands
            if schedule is not None:
                element = int(self.order[call]) if is_known else None
                arguments = schedule.arguments(operands, call) if is_known else ()
            raise report_failure(error, lowered, before + call + 1, element, arguments) from None
        if recorder is not None:
            elements = [(-1, operands)] if schedule is None else schedule.numbered(operands)
            record_values(recorder, lowered, run.crossing, elements, run.stacked)
        return tuple(
            (array if schedule is None else schedule.by_element(array)).reshape(shape)
            for array, shape in zip(run.stacked, self._shapes, strict=True)
        )


CROSSINGS.add(SpreadCrossing.cross.__code__)
WAITING.add(SpreadCrossing.cross.__code__)


class _Run:
    """The host calls of one crossing; `before` is the number of those of the host function before.

    Attributes:
        crossing: the number of the crossing in the recording.
        stacked: one array for each result, with a row for each call that has returned.
        failed: the first call that has failed, its error, and whether it is known that this call
            failed and no other one of its chunk.
    """

    failed: Any = None

    def __init__(
        self,
        site: SpreadCrossing,
        operands: Sequence[np.ndarray],
        recorder: Recorder | None,
        before: int,
    ) -> None:
        host, parts, options = site.host, site.parts, site.options
        self.recorder, self.lowered, self.host = recorder, site.lowered, host
        self.order, self.before = site.order, before
        self.crossing, self._clock = -1, time.perf_counter_ns
        call = parts.adapt(host.current)
        if recorder is not None:
            self.crossing, self._clock = recorder.crossing(), recorder.clock
            if host.replaced:
                recorder.stale(site.lowered)
            if recorder.around is not None:
                call = recorder.around(site.lowered, call)
        self._version, self._first = host.version, [True]
        self.stacked = [
            np.empty((self.order.size, *shape), dtype)
            for shape, dtype in zip(parts.shapes, parts.dtypes, strict=True)
        ]
        self._keep = functools.partial(_keep, parts.check, self.stacked)
        self._task = Task(call, self._keep, lambda: _pickled(host.current, host.name, options))
        self._pool = site.pool or pool_of(options.executor)
        # Calls made in a worker thread run in it: workers of threads may all wait for such calls.
        self._is_inline = in_worker_thread() and not self._pool.travels
        self._pool.check_connection()
        workers = 1 if self._is_inline else self._pool.workers
        # With a timeout, each call has its own: a chunk of several would need more. And nothing is
        # sent ahead to workers that are far away, because the timeout would count there.
        self._timeout = options.timeout
        share = 1 if self._timeout else -(-self.order.size // (_SHARE * workers))
        self._size = options.chunksize or share
        self._ahead = workers * (_SHARE if self._pool.is_far and not self._timeout else 1)
        self._elements = iter(
            [tuple(operands)] if site.schedule is None else site.schedule.elements(operands)
        )
        self._structured, self._facts = site.structured, site.facts.after(before)
        self._next = 0  # the first call that was not submitted
        self._sent: dict[concurrent.futures.Future, Chunk] = {}  # in the order of their calls
        self._back: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
        self._more = bytearray(b"\1")  # emptied at the end, for chunks in this process

    def wait(self, guard: bytearray) -> None:
        """Make the calls, until all have returned, one has failed, or `guard` is emptied."""
        try:
            while True:
                self._submit(guard)
                if not self._sent and (self.failed or self._next == self.order.size):
                    break
                if not guard:
                    begun = next((future.running() for future in self._sent), False)
                    raise EndedError() if begun else NotCalledError(NOT_CALLED)
                self._receive()
        except BaseException as error:
            missing = next((chunk.start for chunk in self._sent.values()), self._next)
            is_interrupt = is_a(error, KeyboardInterrupt, EndedError, NotCalledError)
            self.failed = missing, error, is_interrupt and missing < self.order.size
            raise
        finally:
            self._more.clear()
            for future in self._sent:
                self._pool.cancel(future)
        if self.failed:
            raise self.failed[1]

    def end_calls(self, error: BaseException) -> None:
        """End the calls that workers still make; those of killed processes fail with `error`."""
        killed = self._end([chunk for future, chunk in self._sent.items() if not future.done()])
        self._record_as_lost(killed, error)

    def _submit(self, guard: bytearray) -> None:
        """Submit chunks until each worker has one, or several if the workers are far away."""
        while guard and self.failed is None and len(self._sent) < self._ahead:
            elements = list(itertools.islice(self._elements, self._size))
            if not elements:
                return
            start, self._next = self._next, self._next + len(elements)
            facts = self._facts.cut(start, self._next)
            chunk = Chunk(elements, facts, self._structured, self._clock)
            chunk.start, chunk.run, chunk.more = start, self, self._more
            chunk.sent_ns = self._clock()
            # Workers of ours note when they begin; others may never do.
            chunk.began = None if self._pool.make else time.monotonic()
            run: Callable[..., Any] = run_chunk
            if self._pool.travels is False:  # threads see the context variables of the crossing
                run = functools.partial(contextvars.copy_context().run, run_chunk)
            try:
                if self._is_inline:
                    future: Any = concurrent.futures.Future()
                    future.set_result(run(self._task, chunk))
                else:
                    future = self._pool.executor.submit(run, self._task, chunk)
            except Exception as error:
                self._next = start
                self._lose(error)
                return
            self._sent[future] = chunk
            future.add_done_callback(functools.partial(self._come_back, chunk))

    def _come_back(self, chunk: Chunk, future: concurrent.futures.Future) -> None:
        """Take what came of a chunk, on the executor's thread; the run may be over."""
        try:
            if not future.cancelled() and future.exception() is None:
                if chunk.settled.acquire(blocking=False):
                    self._take(chunk, future.result())
        except BaseException as error:
            chunk.failed = chunk.start, error
        finally:
            self._back.put(future)

    def _take(self, chunk: Chunk, outcome: Any) -> None:
        """Keep the results of a chunk, and record its calls."""
        worker, results, stamps, raised, trace = received(outcome)
        errors: dict[int, BaseException] = {}
        if raised is not None:
            if trace:
                where = f"pid {worker.pid}, {worker.host}"
                add_note(raised, f"raised in a worker ({where}):\n{trace}")
            errors[len(stamps) - 2] = raised
        for place, result in enumerate(results):
            try:
                self._keep(chunk.start + place, restored(result))
            except BaseException as refused:
                errors[place] = refused
                break
        if errors:
            place = min(errors)
            chunk.failed = chunk.start + place, errors[place]
        self._record(chunk, worker, self.order[chunk.calls][: len(stamps) - 1], stamps, errors)

    def _record(
        self,
        chunk: Chunk,
        worker: Worker,
        elements: np.ndarray,
        stamps: Sequence[int],
        errors: Mapping[int, BaseException],
    ) -> None:
        recorder = self.recorder
        if recorder is None or not len(elements):
            return
        rows = recorder.worker_rows(worker, elements, stamps, chunk.sent_ns, self._clock())
        rows["lowered"], rows["crossing"] = recorder.numbers[self.lowered], self.crossing
        rows["version"] = self._version
        for place, error in errors.items():
            rows["error"][place] = recorder.error(describe(error))
        recorder.called(rows.tobytes(), first=bool(self._first and self._first.pop()))

    def _receive(self) -> None:
        """Wait for a chunk, but not for long, to look after the others."""
        self._pool.check_connection()
        self._look_for_late()
        try:
            future = self._back.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return
        chunk = self._sent.get(future)
        if chunk is None:  # its calls are no longer needed
            return
        if future.cancelled():
            self._pool.check_connection()
            raise ExecutorError(
                f"{self._pool.word} cancelled the work it was given. Keep it open while the "
                "callback is in use."
            )
        error = future.exception()
        if error is not None:
            self._lose(error, chunk)
            return
        del self._sent[future]
        if chunk.failed is not None:
            self._fail(*chunk.failed)

    def _look_for_late(self) -> None:
        """Give up the first chunk that takes longer than the timeout, and end its worker."""
        now, limit = time.monotonic(), self._timeout or math.inf
        for chunk in self._sent.values():
            if chunk.began is not None and now - chunk.began > limit:
                words = "", f" took more than {limit:g} s (timeout=)"
                if self._give_up([chunk], TimeoutError, words):
                    self._end([chunk])
                    chunk.run = None  # its call is recorded, even if it never returns
                    return

    def _lose(self, error: BaseException, chunk: Chunk | None = None) -> None:
        """Give up the chunk of a worker that died; raise ExecutorError if it is not that.

        A pool of several processes breaks as a whole, and does not say which chunk its worker had.
        """
        word, lost = self._pool.word, [] if chunk is None else [chunk]
        words = f"a worker of {word} died while it ran ", "."
        if self._pool.make is None and is_a(error, concurrent.futures.BrokenExecutor):
            lost = [*self._sent.values()]
            broken = "The executor is broken: replace it with a new one."
            words = f"one of the workers of {word} died, which had ", f". {broken}"
        if not has_lost_worker(error) or not self._give_up(lost, WorkerLostError, words, error):
            raise self._pool.error(error) from error

    def _give_up(
        self,
        chunks: Iterable[Chunk],
        kind: Callable[[str], BaseException],
        around: tuple[str, str],
        cause: BaseException | None = None,
    ) -> bool:
        """Fail and record chunks that do not come back; return False if all have come back.

        The text of the error is `around` the names of the batch elements.
        """
        chunks = _unsettled(chunks)
        if not chunks:
            return False
        calls = [call for chunk in chunks for call in chunk.calls]
        error = kind(self._words(calls).join(around))
        error.__cause__ = cause
        self._record_as_lost(chunks, error)
        self._sent = {sent: chunk for sent, chunk in self._sent.items() if chunk not in chunks}
        self._fail(calls[0], error, len(calls) == 1)
        return True

    def _record_as_lost(self, chunks: Iterable[Chunk], error: BaseException) -> None:
        """Record chunks that do not come back, each as one call."""
        worker = Worker(socket.gethostname(), os.getpid(), -1, "a worker that did not return")
        for chunk in chunks:
            elements = self.order[chunk.calls] if chunk.count == 1 else np.array([-1])
            self._record(chunk, worker, elements, (chunk.sent_ns, self._clock()), {0: error})

    def _fail(self, call: int, error: BaseException, is_known: bool = True) -> None:
        """Note that `call` has failed: only what was called before it is waited for now."""
        if self.failed is None or call < self.failed[0]:
            self.failed = call, error, is_known
        for future, chunk in list(self._sent.items()):
            if chunk.start > self.failed[0]:
                self._pool.cancel(future)
                del self._sent[future]

    def _end(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """End what workers run: in threads by an exception, see `end_calls`.

        Returns those whose worker was killed, so they do not come back.
        """
        end_calls(lambda frame: frame.f_code is RUN_CHUNK and frame.f_locals["chunk"] in chunks)
        return _unsettled(self._pool.end(chunks))

    def _words(self, calls: Sequence[int]) -> str:
        """Name the batch elements of calls in a message."""
        elements = self.order[list(calls)].tolist()
        first, last, count = elements[0], elements[-1], len(elements)
        if count == 1:
            return "the call" if first == -1 else f"batch element {first}"
        if elements == list(range(first, first + count)):
            return f"batch elements {first} to {last}"
        shown = ", ".join(map(str, elements[:_NAMED]))
        return f"batch elements {shown}{', ...' if count > _NAMED else ''}"


def _unsettled(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks that have not come back, of which nothing is taken from now on."""
    return [chunk for chunk in chunks if chunk.settled.acquire(blocking=False)]


def _keep(check: ResultChecker, stacked: Sequence[np.ndarray], call: int, returned: Any) -> None:
    """Copy the results of a call, because the host function may reuse their memory."""
    for rows, array in zip(stacked, check(returned), strict=True):
        rows[call] = array


def _pickled(value: Any, name: str, options: Options) -> bytes:
    """Pickle `value` for another process; raise TypeError if it cannot be."""
    __tracebackhide__ = True
    try:
        return needed("cloudpickle", options.spelled("executor")).dumps(value, 5)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        raise TypeError(
            f"cannot send {name} to {options.spelled('executor')}: it cannot be pickled "
            f"({describe(error)}). Open files, locks and connections inside the function, or pass "
            "executor='threads'."
        ) from error
