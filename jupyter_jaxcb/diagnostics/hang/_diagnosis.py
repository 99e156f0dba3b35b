"""Say what a program waits for that does not go on.

The answer comes from a few facts: which host call has not returned, since when, at which line its
thread is, whether that line is inside JAX, and which threads use the processor.
"""

from __future__ import annotations

import concurrent.futures.thread
import enum
import threading
import time
import traceback
from typing import NamedTuple

import jax

from ... import jax_compat
from ...capabilities.lint import advice_for_jax_inside
from ...recording import COMPILED_THREAD, active
from ...stack.interrupt import is_call_of_jax
from ...stack.trace import (
    AWAITING_ROOM,
    any_lowered,
    frames_of_threads,
    is_below,
    is_user_code,
    stack_of,
)
from ..record import RunningCall, all_running_calls, calls_on_stack
from ._cpu import CpuTimes, cpu_use
from ._place import place_of

_ENDING_SECONDS = 0.5  # in which interrupted threads end
_POLL_SECONDS = 0.01
_COLLECTIVE = (
    "A device that has failed, or has not begun, lets the others wait in a collective operation."
)
_ARRAYS = " JAX's own callbacks pass JAX arrays: convert them with np.asarray first."
_LOOP = (
    "This may be a long or endless loop in the compiled program. To see the steps of its loops, "
    "run it under %%jax_watch, or with python -m jupyter_jaxcb run --watch."
)


class HangKind(enum.Enum):
    """Why a program does not go on; of several reasons, the first one here counts."""

    DEADLOCK = "a host function waits for JAX, which waits for it"
    FULL_QUEUE = "a queued call waits for the program, which waits for room in the queue"
    GIL = "a thread held the GIL"
    SLOW = "a host function computes"
    COLLECTIVE = "a device waits for others"
    PROGRAM = "a compiled program computes"
    LOCK = "a host function waits for a lock or for another thread"
    UNKNOWN = "a host function waits for something else"


class Hang(NamedTuple):
    """A program that does not go on.

    Attributes:
        kind: why.
        text: a paragraph on each host call that is running, or on the main thread if none is.
        stacks: see `stacks_of_threads`.
        seconds: for how long no host call has begun or ended; 0 if that is not known.
        certain: whether it is a deadlock that nothing else explains.
    """

    kind: HangKind
    text: str
    stacks: str
    seconds: float = 0.0
    certain: bool = False


def examine(now_ns: int, since: CpuTimes | None = None, starved: bool = False) -> Hang:
    """Return why the program does not go on, supposing that it does not.

    Args:
        now_ns: time of the recorder's clock.
        since: which threads compute is measured since then; None: in the next 0.2 s.
        starved: whether this thread got the GIL much later than it wanted it since then.
    """
    look = _Look(now_ns, since, starved)
    reasons = (
        [look.at_call(call) for call in look.calls]
        or [look.at_call_of_jax(ident) for ident in look.calls_of_jax]
        or [look.at_main_thread()]
    )
    order = list(HangKind)
    kind = min((kind for kind, _ in reasons), key=order.index)
    text = "\n".join(dict.fromkeys(words for _, words in reasons))
    certain = kind in (HangKind.DEADLOCK, HangKind.FULL_QUEUE) and look.waits_only_for_jax()
    return Hang(kind, text, stacks_of_threads(), certain=certain)


class _Look:
    """What all threads do at one moment.

    Attributes:
        calls: the host calls that are running.
        calls_of_jax: idents of the threads in host calls of JAX's own callbacks.
    """

    def __init__(self, now_ns: int, since: CpuTimes | None, starved: bool) -> None:
        self._now_ns, self._cpu, self._starved = now_ns, cpu_use(since), starved
        self._frames = frames_of_threads()
        self._names = {thread.ident or 0: thread.name for thread in threading.enumerate()}
        self._innermost: dict[tuple[int, int], tuple[int, RunningCall]] = {}  # call of its thread
        for ident, frame in self._frames.items():
            nested = list(calls_on_stack(frame, self._names.get(ident, "")))
            self._innermost |= {_key(call): (ident, nested[0]) for call in nested}
        self.calls = all_running_calls()
        self.calls_of_jax = [ident for ident, at in self._frames.items() if is_call_of_jax(at)]

    def at_call(self, call: RunningCall) -> tuple[HangKind, str]:
        """Return why a host call does not return."""
        site = call.lowered.site
        head = f"{site.function} ({site.flavor}, {site.where}) has not returned"
        if call.start_ns is not None:
            head += f" for {max(self._now_ns - call.start_ns, 0) / 1e9:,.1f} s"
        if call.thread.startswith("pid "):
            words = f"its worker process ({call.thread}) is still in it."
            return HangKind.UNKNOWN, f"{head}: {words}"
        if call.thread == COMPILED_THREAD:
            kind = HangKind.SLOW if self._cpu.process else HangKind.UNKNOWN
            does = "computes" if self._cpu.process else "waits"
            return kind, f"{head}: it {does} in machine code, which nothing can interrupt."
        ident, inner = self._thread_of(call)
        if _key(inner) != _key(call):
            return HangKind.UNKNOWN, f"{head}: it waits for {inner.lowered.site.function}."
        kind, words = self._at_line(ident, call)
        return kind, f"{head}: {words}"

    def at_call_of_jax(self, ident: int) -> tuple[HangKind, str]:
        """As `at_call`, for a call of JAX's own callbacks that is not observed."""
        kind, words = self._at_line(ident, None)
        return kind, f"A host function of JAX's own callbacks has not returned: {words}"

    def at_main_thread(self) -> tuple[HangKind, str]:
        """Return why the main thread does not go on, if no host call is running."""
        frame = self._frames.get(threading.main_thread().ident or 0)
        place = place_of(frame)
        head = "no host call is running: the main thread"
        if self._cpu.process:
            words = f"{head} is at {place.line}, and the process computes."
            if place.in_jax and (jax_compat.is_in_run(frame) or jax_compat.unfinished_runs()):
                return HangKind.PROGRAM, f"{words}{_last_call()} {_LOOP}"
            return HangKind.UNKNOWN, words
        if not place.in_jax:
            return HangKind.UNKNOWN, f"{head} waits at {place.line}."
        several = any_lowered() and jax.local_device_count() > 1
        return HangKind.COLLECTIVE if several else HangKind.UNKNOWN, (
            f"{head} waits inside JAX at {place.line}, and nothing computes. {_COLLECTIVE}"
        )

    def waits_only_for_jax(self) -> bool:
        """Return whether all host calls wait for JAX, and nothing computes that may end that.

        Of other devices than CPUs, and of other processes, nobody here knows whether they compute.
        """
        idents = {self._thread_of(call)[0] for call in self.calls} | set(self.calls_of_jax)
        return (
            all(place_of(self._frames.get(ident)).awaits_jax for ident in idents)
            and self._cpu.busiest is None
            and not self._cpu.others
            and all(device.platform == "cpu" for device in jax.devices())
            and jax.process_count() == 1
        )

    def _thread_of(self, call: RunningCall) -> tuple[int, RunningCall]:
        """Return the thread of a call, and the innermost call on it."""
        by_name = (ident for ident, name in self._names.items() if name == call.thread)
        return self._innermost.get(_key(call)) or (next(by_name, 0), call)

    def _at_line(self, ident: int, call: RunningCall | None) -> tuple[HangKind, str]:
        place, cpu = place_of(self._frames.get(ident)), self._cpu
        line, computes = place.line, cpu.threads.get(ident, cpu.process)
        if place.in_jax:  # not only in a function that JAX calls, such as one that it traces
            jax_computes = cpu.process if cpu.others is None else cpu.others
            return self._in_jax(line, computes or jax_computes, call)
        if computes:
            return HangKind.SLOW, f"it computes at {line}."
        if place.at_lock:
            words = f"it waits at {line}, and uses no processor time: for a lock or another thread."
            return HangKind.LOCK, words
        if self._starved and cpu.busiest is not None:
            holder = self._names.get(cpu.busiest, f"thread {cpu.busiest}")
            holds = place_of(self._frames.get(cpu.busiest)).line
            return HangKind.GIL, (
                f"it is at {line}, and waited for the GIL, which {holder} held; that is now at "
                f"{holds}."
            )
        return HangKind.UNKNOWN, (
            f"it waits at {line}, and uses no processor time: for a lock, another thread or "
            "process, a file, a connection or a clock."
        )

    def _in_jax(self, line: str, computes: bool, call: RunningCall | None) -> tuple[HangKind, str]:
        head = f"it is inside JAX at {line}, "
        if computes:
            return HangKind.SLOW, f"{head}{advice_for_jax_inside()}."
        if any(is_below(AWAITING_ROOM, frame) for frame in self._frames.values()):
            return HangKind.FULL_QUEUE, (
                f"{head}and waits for a program that waits for it, because the queue is full: a "
                "deadlock. Use NumPy in queued host functions."
            )
        key = None if call is None else _key(call)
        others = [other for other in self.calls if not other.in_jax and _key(other) != key]
        if others:
            names = " or ".join(dict.fromkeys(other.lowered.site.function for other in others))
            words = f"{head}and waits for a program, perhaps that of {names}."
            return HangKind.UNKNOWN, words
        _, _, way_out = advice_for_jax_inside().partition(": ")
        if way_out:
            way_out = f" {way_out[0].upper()}{way_out[1:]}."
            is_of_jax = call is None or call.lowered.site.flavor.startswith("jax ")
            way_out += _ARRAYS * is_of_jax
        return HangKind.DEADLOCK, (
            f"{head}and nothing computes, so it waits for a program that waits for it: a "
            f"deadlock.{way_out}"
        )


def _key(call: RunningCall) -> tuple[int, int]:
    return id(call.host), call.number


def _last_call() -> str:
    recorder = active()
    last = None if recorder is None else recorder.last_call()
    if last is None:
        return ""
    site, number = last[0].site, last[1]
    return f" The last was call {number:,} of {site.function} ({site.flavor}, {site.where})."


def calls_left() -> str:
    """Return what `examine` says of the host calls that an interrupt has not ended; empty if none.

    Without any, name the other threads in the user's code for which Python waits at its end, such
    as workers of an executor, or say that a device waits for others.
    """
    if all_running_calls():
        text = examine(time.perf_counter_ns()).text
        return text if all_running_calls() else ""
    deadline = time.monotonic() + _ENDING_SECONDS
    while (text := _threads_left() or _devices_left()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return text


def _threads_left() -> str:
    frames, lines = frames_of_threads(), []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        files = {below.f_code.co_filename for below in stack_of(frame)}
        waits = not thread.daemon or concurrent.futures.thread.__file__ in files
        if thread is not threading.main_thread() and waits and any(map(is_user_code, files)):
            lines.append(f"{thread.name} is still at {place_of(frame).line}.")
    return "\n".join(lines)


def _devices_left() -> str:
    left = any_lowered() and jax.local_device_count() > 1 and jax_compat.unfinished_arrays()
    return f"A program over several devices has not ended. {_COLLECTIVE}" if left else ""


def stacks_of_threads() -> str:
    """Return the Python stacks of all threads but those of this package, innermost line last.

    Frames of libraries are left out, except if they are the innermost ones.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for ident, innermost in frames_of_threads().items():
        name = names.get(ident, f"thread {ident}")
        if not name.startswith("jupyter_jaxcb"):
            stack = traceback.extract_stack(innermost)
            shown = [at for at in stack if at is stack[-1] or is_user_code(at.filename)]
            lines += [f"{name}:\n", *traceback.format_list(shown)]
    return "".join(lines)
