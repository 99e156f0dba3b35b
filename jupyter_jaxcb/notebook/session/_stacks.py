"""Describe running host calls and their stacks."""

from __future__ import annotations

import linecache
import threading

from ...capabilities import advice_for_jax_inside
from ...diagnostics import RunningCall
from ...recording import Frame, where_now
from ...report import time_words
from ...stack import frames_of_threads, is_cell, is_user_code, stack_of


def running_line(call: RunningCall, now_ns: int) -> str:
    """Describe a running call in one line: callback, flavor, line, call, element, time, thread.

    Args:
        call: a running host call.
        now_ns: time of the recorder's clock.
    """
    site = call.lowered.site
    parts = [f"{site.function} ({site.flavor}, {where_now(site)})", f"call {call.number:,}"]
    if call.element >= 0:
        parts.append(f"batch element {call.element}")
    if call.start_ns is None:
        parts.append("not recorded, so its duration is unknown")
    else:
        parts.append(f"for {time_words(max(now_ns - call.start_ns, 0))}")
    parts.append(f"on {call.thread}")
    if call.in_jax:
        parts.append(f"inside JAX, {advice_for_jax_inside()}")
    return ", ".join(parts)


def stacks(calls: list[RunningCall], now_ns: int, waiting: object) -> str:
    """Describe each running host call with the Python stack of its thread, innermost line last.

    Args:
        calls: see `all_running_calls`.
        now_ns: time of the recorder's clock.
        waiting: describes the calls that wait in the queue; false if none do.
    """
    lines = [] if calls else ["no host call is running"]
    for call in calls:
        lines.append(running_line(call, now_ns))
        lines += [f"    {_place(frame)}" for frame in reversed(call.stack)]
        if not call.stack:
            in_process = call.thread.startswith("pid ")
            place = "its worker process" if in_process else "library code or compiled code"
            lines.append(f"    in {place}")
    if waiting:
        lines.append(f"waiting: {waiting}")
    return "\n".join(lines)


def main_stack() -> str:
    """Return the Python stack of the main thread, without code of libraries."""
    innermost = frames_of_threads().get(threading.main_thread().ident or 0)
    frames = [
        Frame(code.co_name, code.co_filename, line, cell=is_cell(code.co_filename))
        for code, line in ((at.f_code, at.f_lineno or 0) for at in stack_of(innermost))
    ]
    lines = [f"    {_place(frame)}" for frame in frames if is_user_code(frame.file)]
    return "\n".join(["main thread", *reversed(lines)])


def _place(frame: Frame) -> str:
    where = where_now(frame)
    source = linecache.getline(frame.file, frame.line).strip()
    return f"{where}, in {frame.function}{f': {source}' if source else ''}"
