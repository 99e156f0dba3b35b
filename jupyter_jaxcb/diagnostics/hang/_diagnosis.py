"""Say what a program waits for that does not go on, from the stacks of its threads."""

from __future__ import annotations

import concurrent.futures.thread
import enum
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType
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
from ._cpu import CpuTimes, CpuUse, cpu_use
from ._place import Place, place_of

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


class _Now(NamedTuple):
    """What all threads do at one moment."""

    at_ns: int
    cpu: CpuUse
    frames: Mapping[int, FrameType]
    names: Mapping[str, int]  # idents of threads by name
    inside: Mapping[tuple[int, int], tuple[int, RunningCall]]  # thread of a call; its innermost one
    calls: Sequence[RunningCall]
    starved: bool  # whether one thread held the GIL for long

    def name(self, ident: int) -> str:
        """Return the name of a thread."""
        return next((name for name, own in self.names.items() if own == ident), f"thread {ident}")


def examine(now_ns: int, since: CpuTimes | None = None, starved: bool = False) -> Hang:
    """Return why the program does not go on, supposing that it does not.

    Args:
        now_ns: time of the recorder's clock.
        since: which threads compute is measured since then; None: in the next 0.2 s.
        starved: whether this thread got the GIL much later than it wanted it since then.
    """
    now = _look(now_ns, cpu_use(since), starved)
    found = [_of_call(call, now) for call in now.calls] or _of_jax(now) or [_of_main(now)]
    kinds = list(HangKind)
    kind = min((kind for kind, _ in found), key=kinds.index)
    return Hang(
        kind,
        "\n".join(dict.fromkeys(text for _, text in found)),
        stacks_of_threads(),
        certain=kind in (HangKind.DEADLOCK, HangKind.FULL_QUEUE) and _is_certain(now),
    )


def _is_certain(now: _Now) -> bool:
    """Return whether all host calls wait in JAX, on CPU, and nothing that may end that computes.

    Of other devices and processes, nobody here knows whether they compute.
    """
    idents = {now.inside.get(_key(call), (0, call))[0] for call in now.calls}
    idents |= {ident for ident, frame in now.frames.items() if is_call_of_jax(frame)}
    return (
        all(place_of(now.frames.get(ident)).awaits_jax for ident in idents)
        and now.cpu.busiest is None
        and not now.cpu.others
        and jax.process_count() == 1
        and all(device.platform == "cpu" for device in jax.devices())
    )


def calls_left() -> str:
    """Return what `examine` says of the host calls that an interrupt has not ended; empty if none.

    Without any, name the other threads in the user's code for which Python waits at its end, such
    as workers of an executor, or say that a device waits for others.
    """
    if all_running_calls():
        said = examine(time.perf_counter_ns()).text
        return said if all_running_calls() else ""
    deadline = time.monotonic() + _ENDING_SECONDS
    while (said := _threads_left() or _devices_left()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return said


def _threads_left() -> str:
    frames = frames_of_threads()
    return "\n".join(
        f"{thread.name} is still at {place_of(frames.get(thread.ident or 0)).line}."
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
        if _is_waited_for(thread, frames.get(thread.ident or 0))
    )


def _devices_left() -> str:
    left = any_lowered() and jax.local_device_count() > 1 and jax_compat.unfinished_arrays()
    return f"A program over several devices has not ended. {_COLLECTIVE}" if left else ""


def _is_waited_for(thread: threading.Thread, frame: FrameType | None) -> bool:
    """Return whether a thread runs code of the user, and Python waits for it at its end."""
    files = {one.f_code.co_filename for one in stack_of(frame)}
    waits = not thread.daemon or concurrent.futures.thread.__file__ in files
    return waits and any(map(is_user_code, files))


def makes_host_calls() -> bool:
    """Return whether a host call is running, recorded or not; also of JAX's own callbacks."""
    return bool(all_running_calls()) or any(map(is_call_of_jax, frames_of_threads().values()))


def _look(now_ns: int, cpu: CpuUse, starved: bool) -> _Now:
    frames = frames_of_threads()
    names = {thread.ident or 0: thread.name for thread in threading.enumerate()}
    inside: dict[tuple[int, int], tuple[int, RunningCall]] = {}
    for ident, frame in frames.items():
        first = None
        for call in calls_on_stack(frame, names.get(ident, "")):
            first = first or call
            inside[_key(call)] = ident, first
    by_name = {name: ident for ident, name in names.items()}
    return _Now(now_ns, cpu, frames, by_name, inside, all_running_calls(), starved)


def _key(call: RunningCall) -> tuple[int, int]:
    return id(call.host), call.number


def _of_call(call: RunningCall, now: _Now) -> tuple[HangKind, str]:
    site = call.lowered.site
    start = call.start_ns
    since = "" if start is None else f" for {max(now.at_ns - start, 0) / 1e9:,.1f} s"
    head = f"{site.function} ({site.flavor}, {site.where}) has not returned{since}: "
    ident, inner = now.inside.get(_key(call), (now.names.get(call.thread), call))
    if call.thread.startswith("pid "):
        return HangKind.UNKNOWN, f"{head}its worker process ({call.thread}) is still in it."
    if call.thread == COMPILED_THREAD:
        computes = now.cpu.process
        words = "it computes" if computes else "it waits"
        kind = HangKind.SLOW if computes else HangKind.UNKNOWN
        return kind, f"{head}{words} in machine code, which nothing can interrupt."
    place = place_of(now.frames.get(ident or 0))
    if _key(inner) != _key(call):
        return HangKind.UNKNOWN, f"{head}it waits for {inner.lowered.site.function}."
    kind, words = _of_place(call, place, ident, now)
    return kind, head + words


def _of_jax(now: _Now) -> list[tuple[HangKind, str]]:
    """As `_of_call`, for calls of JAX's own callbacks that are not observed."""
    found = []
    for ident, frame in now.frames.items():
        if is_call_of_jax(frame):
            kind, words = _of_place(None, place_of(frame), ident, now)
            found.append(
                (kind, f"A host function of JAX's own callbacks has not returned: {words}")
            )
    return found


def _of_place(
    call: RunningCall | None, place: Place, ident: int | None, now: _Now
) -> tuple[HangKind, str]:
    line = place.line
    computes = now.cpu.threads.get(ident or 0, now.cpu.process)
    if place.in_jax:  # not only in a function that JAX calls, such as one that it traces
        return _in_jax(call, line, computes, now)
    if computes:
        return HangKind.SLOW, f"it computes at {line}."
    if place.at_lock:
        return HangKind.LOCK, (
            f"it waits at {line}, and uses no processor time: for a lock or another thread."
        )
    if now.starved and now.cpu.busiest is not None:
        name = now.name(now.cpu.busiest)
        holds = place_of(now.frames.get(now.cpu.busiest)).line
        return HangKind.GIL, (
            f"it is at {line}, and waited for the GIL, which {name} held; that is now at {holds}."
        )
    return HangKind.UNKNOWN, (
        f"it waits at {line}, and uses no processor time: for a lock, another thread or process, "
        "a file, a connection or a clock."
    )


def _in_jax(call: RunningCall | None, line: str, computes: bool, now: _Now) -> tuple[HangKind, str]:
    jax_computes = now.cpu.process if now.cpu.others is None else now.cpu.others
    if computes or jax_computes:
        return HangKind.SLOW, f"it is inside JAX at {line}, {advice_for_jax_inside()}."
    if any(is_below(AWAITING_ROOM, frame) for frame in now.frames.values()):
        return HangKind.FULL_QUEUE, (
            f"it is inside JAX at {line}, and waits for a program that waits for it, because the "
            "queue is full: a deadlock. Use NumPy in queued host functions."
        )
    others = [
        other.lowered.site.function
        for other in now.calls
        if not other.in_jax and (call is None or _key(other) != _key(call))
    ]
    if others:
        return HangKind.UNKNOWN, (
            f"it is inside JAX at {line}, and waits for a program, perhaps that of "
            f"{' or '.join(dict.fromkeys(others))}."
        )
    return HangKind.DEADLOCK, (
        f"it is inside JAX at {line}, and nothing computes, so it waits for a program that waits "
        f"for it: a deadlock.{_way_out(call)}"
    )


def _way_out(call: RunningCall | None) -> str:
    words = advice_for_jax_inside().partition(": ")[2]
    is_jaxs_own = call is None or call.lowered.site.flavor.startswith("jax ")
    return f" {words[:1].upper()}{words[1:]}.{_ARRAYS * is_jaxs_own}" if words else ""


def _of_main(now: _Now) -> tuple[HangKind, str]:
    frame = now.frames.get(threading.main_thread().ident or 0)
    place = place_of(frame)
    line, in_jax = place.line, place.in_jax
    head = "no host call is running: the main thread"
    if now.cpu.process:
        said = f"{head} is at {line}, and the process computes."
        if in_jax and (jax_compat.is_in_run(frame) or jax_compat.unfinished_runs()):
            return HangKind.PROGRAM, f"{said}{_last_call()} {_LOOP}"
        return HangKind.UNKNOWN, said
    if not in_jax:
        return HangKind.UNKNOWN, f"{head} waits at {line}."
    several = any_lowered() and jax.local_device_count() > 1
    return HangKind.COLLECTIVE if several else HangKind.UNKNOWN, (
        f"{head} waits inside JAX at {line}, and nothing computes. {_COLLECTIVE}"
    )


def _last_call() -> str:
    recorder = active()
    last = None if recorder is None else recorder.last_call()
    if last is None:
        return ""
    site, number = last[0].site, last[1]
    return f" The last was call {number:,} of {site.function} ({site.flavor}, {site.where})."


def stacks_of_threads() -> str:
    """Return the Python stacks of all threads but those of this package, innermost line last.

    Frames of libraries are left out, except if they are the innermost ones.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for ident, frame in frames_of_threads().items():
        name = names.get(ident, f"thread {ident}")
        if not name.startswith("jupyter_jaxcb"):
            lines += [f"{name}:\n", *_frames_of(frame)]
    return "".join(lines)


def _frames_of(innermost: FrameType) -> list[str]:
    """Return the frames of the user as text, and the innermost one if it is of a library."""
    stack = traceback.extract_stack(innermost)
    return traceback.format_list(
        [one for one in stack if one is stack[-1] or is_user_code(one.filename)]
    )
