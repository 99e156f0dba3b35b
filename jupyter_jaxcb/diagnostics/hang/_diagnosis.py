"""Say what a program waits for that does not go on, from the stacks of its threads."""

from __future__ import annotations

import ast
import linecache
import threading
import time
from types import FrameType
from typing import Any

import jax

from ...capabilities.lint import advice_for_jax_inside
from ...stack.trace import JAX_FOLDER, frames_of_threads, is_user_code
from ..record import RunningCall, all_running_calls, calls_on_stack

_SAMPLE_SECONDS = 0.2
_BUSY = 0.1  # of one core, which others may use too
_IN_JAX = type(jax.jit(len))


def diagnosis(now_ns: int) -> str:
    """Return a paragraph on each running host call, or on the main thread if there is none.

    Takes 0.2 s, in which it measures whether the process computes.

    Args:
        now_ns: time of the recorder's clock.
    """
    busy = _is_busy()
    frames = frames_of_threads()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    inside: dict[tuple[int, int], FrameType] = {}
    for ident, frame in frames.items():
        for call in calls_on_stack(frame, names.get(ident, "")):
            inside[id(call.host), call.number] = frame
    calls = all_running_calls()
    words = [_of_call(c, inside.get((id(c.host), c.number)), now_ns, busy) for c in calls]
    return "\n".join(words or [_of_main(frames.get(threading.main_thread().ident or 0), busy)])


def calls_left() -> str:
    """Return the `diagnosis` of the host calls that an interrupt has not ended; empty if none."""
    said = diagnosis(time.perf_counter_ns()) if all_running_calls() else ""
    return said if all_running_calls() else ""


def _is_busy() -> bool:
    before = time.process_time()
    time.sleep(_SAMPLE_SECONDS)
    return time.process_time() - before > _BUSY * _SAMPLE_SECONDS


def _of_call(call: RunningCall, frame: FrameType | None, now_ns: int, busy: bool) -> str:
    site = call.lowered.site
    since = "" if call.start_ns is None else f" for {max(now_ns - call.start_ns, 0) / 1e9:,.1f} s"
    head = f"{site.function} ({site.flavor}, {site.where}) has not returned{since}: "
    line, in_jax = _place(frame)
    if call.thread.startswith("pid "):
        return f"{head}its worker process ({call.thread}) is still in it."
    if (in_jax or call.in_jax) and not busy:
        return (
            f"{head}it is inside JAX at {line}, and nothing computes, so it waits for a program "
            f"that waits for it: a deadlock. {_way_out()}"
        )
    if in_jax or call.in_jax:
        return f"{head}it is inside JAX at {line}, {advice_for_jax_inside()}."
    if busy:
        return f"{head}it computes at {line}."
    return (
        f"{head}it waits at {line}, and uses no processor time: for a lock, another thread or "
        "process, a file, a connection or a clock."
    )


def _way_out() -> str:
    words = advice_for_jax_inside().partition(": ")[2]
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _of_main(frame: FrameType | None, busy: bool) -> str:
    line, in_jax = _place(frame)
    if busy:
        return f"no host call is running: the main thread is at {line}, and the process computes."
    if not in_jax:
        return f"no host call is running: the main thread waits at {line}."
    return (
        f"no host call is running: the main thread waits inside JAX at {line}, and nothing "
        "computes. A device that has failed, or has not begun, lets the others wait in a "
        "collective operation."
    )


def _place(frame: FrameType | None) -> tuple[str, bool]:
    """Return the innermost line of the user, and whether it is inside JAX now."""
    of_jax = False
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        of_jax = of_jax or frame.f_code.co_filename.startswith(JAX_FOLDER)
        frame = frame.f_back
    if frame is None:
        return "code of a library", of_jax
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    name = file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line}, {source!r}" if source else f"{name}:{line}", of_jax or _calls_jax(frame)


def _calls_jax(frame: FrameType) -> bool:
    """Return whether `frame` now calls a compiled function, or anything with an array, in C++."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, begin, end = positions
    if first is None or first != last or begin is None or end is None:
        return False
    text = linecache.getline(frame.f_code.co_filename, first).encode()[begin:end].decode()
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(tree, ast.Call):
        return False
    function, used = tree.func, [tree.func, *tree.args]
    if isinstance(function, ast.Attribute):
        if function.attr == "block_until_ready":
            return True
        used.append(function.value)
    used = [_value(node, frame) for node in used]
    return any(isinstance(one, (jax.Array, _IN_JAX)) for one in used)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of an expression if that runs no code of the user; None for any other."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), "__dict__", {}).get(node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        held, key = _value(node.value, frame), node.slice.value
        if type(held) is dict:
            return held.get(key)
        if type(held) in (list, tuple) and type(key) is int and key < len(held):
            return held[key]
    return None
