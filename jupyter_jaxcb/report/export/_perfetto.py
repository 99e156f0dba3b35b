"""Write a recording as a timeline in Chrome's trace event format, which Perfetto reads.

The timeline has a process for the host calls, by thread, one for the compilations, and one for
each worker process of an executor. A crossing that looped over batch elements is a slice around
the slices of its host calls. A crossing of a single call has no slice, and neither has a crossing
whose elements went to workers: their calls carry its number. Times are microseconds since the
first event.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ...recording import LoweredSite, Recording
from ..summary import Rows, level_words

_ROWS = 1 << 16  # formatted at a time
HOST, COMPILER = 1, 2  # process numbers
_PIDS = 1 << 22  # more than a machine's largest pid
_THREAD = 10  # the first thread: Perfetto needs numbers that no process has


def write_perfetto(recording: Recording, file: BinaryIO) -> None:
    """Write `recording` for ui.perfetto.dev and chrome://tracing."""
    base = _base(recording)
    about = {**recording.environment, "host calls not kept": str(recording.overflow)}
    head = {"displayTimeUnit": "ns", "otherData": about}
    file.write(f'{json.dumps(head)[:-1]}, "traceEvents": [\n'.encode())
    file.write(",\n".join(_named(recording)).encode())
    for events in (_compilations(recording, base), *_calls(recording, base)):
        if events:
            file.write((",\n" + ",\n".join(events)).encode())
    file.write(b"\n]}\n")


def _base(recording: Recording) -> int:
    """Return the time of the first event, in ns; all times count from it."""
    begins = [one.end_ns - one.compile_ns - one.lower_ns for one in _timed(recording)]
    if len(recording):
        begins.append(int(recording.calls["start_ns"].min()))
    return min(begins, default=0)


def _named(recording: Recording) -> Iterator[str]:
    """Yield the names of processes and threads; thread 0 of a process is unused."""
    yield _name("process_name", HOST, 0, "host calls")
    yield _name("process_name", COMPILER, 0, "compilation")
    pids = _pids(recording)
    for number, thread in enumerate(recording.threads):
        yield _name("thread_name", pids[number], number + _THREAD, thread)
    for worker in recording.workers:
        if pids[worker.thread] != HOST:
            name = f"worker process {worker.pid} · {worker.host}"
            yield _name("process_name", pids[worker.thread], 0, name)
    for phase, tracks in _tracks(recording).items():
        for track in tracks:
            yield _name("thread_name", COMPILER, track, _PHASES[phase])


def _pids(recording: Recording) -> list[int]:
    """Return the process number of each thread: `HOST`, or a worker's pid.

    Pids of different machines may collide, and in a container the pid may be 1; such a worker gets
    another number.
    """
    pids = [HOST] * len(recording.threads)
    own: dict[tuple[str, int], int] = {}
    for worker in recording.workers:
        if "· pid " in recording.threads[worker.thread]:  # not a thread of the recording process
            key = worker.host, worker.pid
            if key not in own:
                taken = {HOST, COMPILER, *own.values()}
                own[key] = next(n for n in itertools.count(worker.pid, _PIDS) if n not in taken)
            pids[worker.thread] = own[key]
    return pids


def _name(kind: str, process: int, thread: int, name: str) -> str:
    return json.dumps(
        {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
    )


def _timed(recording: Recording) -> list[Any]:
    return [one for one in recording.compilations if one.end_ns]


_PHASES = {"lower": "lower to StableHLO", "compile": "compile by XLA"}


def _phases(recording: Recording) -> dict[str, list[tuple[int, int, Any]]]:
    """Return start, end and compilation by phase; JAX lowers, then compiles."""
    found = {phase: [] for phase in _PHASES}
    for one in _timed(recording):
        began = one.end_ns - one.compile_ns
        found["lower"].append((began - one.lower_ns, began, one))
        found["compile"].append((began, one.end_ns, one))
    return found


def _slots(spans: list[tuple[int, int, Any]]) -> list[int]:
    """Assign each span a free track: threads compile in parallel, but slices can only nest."""
    tracks, free = [0] * len(spans), []
    for place in sorted(range(len(spans)), key=lambda n: spans[n][:2]):
        start, end, _ = spans[place]
        track = next((n for n, until in enumerate(free) if until <= start), len(free))
        free[track : track + 1] = [end]
        tracks[place] = track
    return tracks


def _tracks(recording: Recording) -> dict[str, range]:
    """Number the tracks of each phase: as many as ran in parallel, and at least one."""
    found, number = {}, _THREAD + len(recording.threads)
    for phase, spans in _phases(recording).items():
        found[phase] = range(number, number + max(_slots(spans), default=0) + 1)
        number = found[phase].stop
    return found


def _compilations(recording: Recording, base: int) -> list[str]:
    """Return the events of lowering and compiling each program."""
    events, tracks = [], _tracks(recording)
    for phase, spans in _phases(recording).items():
        own = tracks[phase]
        for (start, end, one), track in zip(spans, _slots(spans), strict=True):
            arguments = " ".join(map(str, one.arguments))
            args = json.dumps({"program": one.program.number, "arguments": arguments})
            name = json.dumps(f"{phase} {one.program.name}")
            events.append(
                f'{{"ph":"X","cat":"{phase}","name":{name},"pid":{COMPILER},"tid":{own[track]},'
                f'"ts":{_micro(start - base)},"dur":{_micro(end - start)},"args":{args}}}'
            )
    return events


def _micro(ns: int) -> str:
    return f"{max(ns, 0) // 1000}.{max(ns, 0) % 1000:03d}"


def _calls(recording: Recording, base: int) -> Iterator[list[str]]:
    """Yield the events of host calls and crossings, sorted by start, in batches."""
    calls = recording.calls
    starts, ends, firsts = _crossings(recording)
    pids = np.array(_pids(recording) or [HOST])
    rows = Rows((fact.site for fact in recording.lowered), recording.where)
    heads = [_head(rows, fact, "host call") for fact in recording.lowered]
    around = [_head(rows, fact, "crossing") for fact in recording.lowered]
    errors = ["", *(f',"error":{json.dumps(error)}' for error in recording.errors)]
    begin = np.concatenate([starts, calls["start_ns"]])
    finish = np.concatenate([ends, calls["end_ns"]])
    whose = np.concatenate([firsts, np.arange(len(calls))])
    # A crossing comes before its first call: viewers nest slices of equal start by their order.
    order = np.lexsort((np.arange(len(begin)), -finish, begin))
    for place in range(0, len(order), _ROWS):
        part = order[place : place + _ROWS]
        rows, is_call = calls[whose[part]], (part >= len(starts)).tolist()
        times = begin[part] - base, np.maximum(finish[part] - begin[part], 0)
        columns = (
            pids[rows["thread"]].tolist(),
            (rows["thread"].astype(np.int64) + _THREAD).tolist(),
            *(column.tolist() for time in times for column in (time // 1000, time % 1000)),
            [
                (heads if call else around)[fact]
                for call, fact in zip(is_call, rows["lowered"].tolist(), strict=True)
            ],
            rows["crossing"].tolist(),
            [
                (_of_element(element, queued) + errors[error]) if call else ""
                for call, element, queued, error in zip(
                    is_call, *(rows[name].tolist() for name in _OF_CALL), strict=True
                )
            ],
        )
        yield list(map(_EVENT.__mod__, zip(*columns, strict=True)))


_EVENT = '{"pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d,%s"crossing":%d%s}}'


_OF_CALL = "element", "queued_ns", "error"


def _of_element(element: int, queued_ns: int) -> str:
    words = f',"element":{element}' if element >= 0 else ""
    return f'{words},"waited_us":{_micro(queued_ns)}' if queued_ns else words


def _crossings(recording: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, ends and first rows of the crossings that looped over elements in-thread."""
    calls = recording.calls
    by_worker = np.isin(calls["thread"], [worker.thread for worker in recording.workers])
    rows = np.flatnonzero((calls["element"] >= 0) & ~by_worker)
    elements = calls[rows]
    order = np.lexsort((elements["start_ns"], elements["crossing"]))
    elements, rows = elements[order], rows[order]
    first = np.flatnonzero(np.diff(elements["crossing"].astype(np.int64), prepend=-1))
    ends = np.maximum.reduceat(elements["end_ns"], first) if len(first) else elements["end_ns"]
    several = np.diff(first, append=len(elements)) > 1
    first = first[several]
    return elements["start_ns"][first], ends[several], rows[first]


def _head(rows: Rows, fact: LoweredSite, kind: str) -> str:
    """Format the part of an event that is equal for all calls of a site in one program."""
    site = fact.site
    operands, results = fact.host_avals()
    vmaps = level_words(fact.levels) if kind == "crossing" else ""
    args = {
        "site": f"{site.flavor}, {rows.where(site)}",
        "source": site.source,
        "program": fact.program.name if fact.program else "eager",
        "shapes": f"{', '.join(map(str, operands))} → {', '.join(map(str, results))}",
        "device": fact.device,
        "vmap": vmaps,
    }
    kept = json.dumps({name: word for name, word in args.items() if word})
    return f'"ph":"X","cat":"{kind}","name":{json.dumps(site.function)},"args":{kept[:-1]}, '
