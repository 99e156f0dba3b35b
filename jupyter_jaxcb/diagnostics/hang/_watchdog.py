"""Notice that no host call begins or ends any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

import jax

from ... import jax_compat
from ...recording import active
from ...stack.trace import any_lowered, frames_of_threads
from ..record import all_running_calls
from ._cpu import CpuTimes
from ._diagnosis import Hang, examine
from ._place import place_of

_LOOK_SECONDS = 1.0  # at most, from one look to the next
_LATE_SECONDS = 1.0  # a thread may wake so late on a busy machine
_QUIET_SECONDS = 5.0  # in which nothing computes; then a deadlock may be certain


class Watchdog:
    """Calls a function once when no host call has begun or ended for some time, and one is running.

    Also if none is running, but the main thread waits inside JAX for a recorded program with host
    calls (on CPU). It looks every second, or twice in that time if it is shorter, on a thread of
    its own, and costs nothing otherwise. That thread needs the GIL as others do: if one of them
    holds it, without running Python, the function is called when it releases it. A context
    manager; or call `start` and `stop`.

    Args:
        seconds: the time; the function is called at the next look. A deadlock that is certain is
            told after 5 seconds.
        told: called on that thread with what is wrong; again only after the program has moved on.
        moved: called on that thread when the program moves on after that.
        looks: called on that thread before each look.
    """

    def __init__(
        self,
        seconds: float,
        told: Callable[[Hang], None],
        moved: Callable[[], None] = lambda: None,
        looks: Callable[[], None] = lambda: None,
    ) -> None:
        self.seconds = seconds
        self._told, self._moved, self._looks = told, moved, looks
        self._stopped: threading.Event | None = None

    def start(self) -> None:
        """Start to watch; no effect if it does already."""
        if self._stopped is None:
            self._stopped = threading.Event()
            name, arguments = "jupyter_jaxcb watchdog", (self._stopped,)
            threading.Thread(target=self._watch, args=arguments, name=name, daemon=True).start()

    def stop(self) -> None:
        """Stop to watch; the functions may still be running."""
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None

    def __enter__(self) -> Watchdog:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _watch(self, stopped: threading.Event) -> None:
        before, since_ns, is_told = None, time.perf_counter_ns(), False
        pause = min(self.seconds / 2, _LOOK_SECONDS)
        last = first = CpuTimes()  # of the last look, and of the first without a change
        while True:
            self._looks()
            if stopped.wait(pause):
                return
            now_ns = time.perf_counter_ns()
            late = time.monotonic() - last.at - pause
            starved = late > max(self.seconds / 2, _LATE_SECONDS)
            state, begun_ns = _state()
            if state is None or state != before:
                if is_told:
                    self._moved()
                before, is_told, first = state, False, CpuTimes()
                since_ns = begun_ns or now_ns
                if starved:  # no thread could begin or end a call
                    since_ns = min(since_ns, now_ns - int(late * 1e9))
            waited = (now_ns - since_ns) / 1e9
            is_due = waited >= self.seconds
            is_quiet = late < _LATE_SECONDS and time.monotonic() - first.at >= _QUIET_SECONDS
            if state is not None and not is_told and (is_due or is_quiet):
                hang = examine(now_ns, last if is_due else first, starved)
                if stopped.is_set():
                    return
                if is_due or hang.certain:
                    is_told = True
                    self._told(hang._replace(seconds=waited))
            last = CpuTimes()


def _state() -> tuple[Hashable, int | None]:
    """Return what changes whenever the program goes on; None if no program waits for a host call.

    Also return when the last call began that is running now, if that is known.
    """
    calls = all_running_calls()
    if not calls:
        return _waiting_main(), None
    state = frozenset(
        (id(call.host), call.host.calls, call.number, call.thread, call.returned) for call in calls
    )
    starts = [call.start_ns for call in calls]
    return state, max((ns for ns in starts if ns is not None), default=None)


def _waiting_main() -> Hashable:
    """Return where the main thread waits for a program with host calls; None if it does not.

    Also return how many calls are recorded, because short ones may come between two looks.
    """
    frame, recorder = frames_of_threads().get(threading.main_thread().ident or 0), active()
    if frame is None or recorder is None or not any_lowered() or not place_of(frame).in_jax:
        return None
    runs = jax_compat.unfinished_runs()
    devices = {device for run in runs for device in run.devices()}
    if jax_compat.is_in_run(frame):
        devices.update(jax.local_devices())
    on_cpu = all(device.platform == "cpu" for device in devices)
    waits = devices and on_cpu
    return (id(frame), frame.f_lasti, len(runs), recorder.count()) if waits else None
