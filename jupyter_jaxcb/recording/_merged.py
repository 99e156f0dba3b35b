"""The recordings of several processes as one; a pure function of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._facts import NotKept, Process, Program, SampleValues, Site, Worker
from ._recording import Recording


def merged(recordings: Sequence[Recording], processes: Sequence[Process] = ()) -> Recording:
    """One recording of all that several processes recorded.

    Calls, programs and what became of them keep their process. Sites of one place are one site;
    notebook cells of equal text count as one place, whatever their kernels call them. Times are
    moved by the offset of their process, and calls are in the order in which they ended.

    Args:
        recordings: one of each process.
        processes: whose they are; with neither clocks nor names, counted from 0, if left out.

    Raises:
        ValueError: there is none, one is of several processes already, or some are of
            `jaxcb.explain` and some are not.
    """
    processes = tuple(processes) or tuple(Process(n, "", 0) for n in range(len(recordings)))
    _check(recordings)
    files = _Files()
    parts = [
        _part(files.joined(recording), process)
        for recording, process in zip(recordings, processes, strict=True)
    ]
    return _joined(parts, processes)


def _joined(parts: Sequence[Recording], processes: Sequence[Process]) -> Recording:
    """Those of all processes one after the other, the calls by their end."""
    calls, sample_values = _numbered(parts)
    bound: Counter[Site] = Counter()
    for part in parts:
        bound.update(part.bound)
    first = _starts([len(part.lowered) for part in parts])
    return Recording(
        bound=dict(bound),
        lowered=_chained(part.lowered for part in parts),
        outcomes=_chained(part.outcomes for part in parts),
        runs={program: count for part in parts for program, count in part.runs.items()},
        stale=frozenset(first[n] + number for n, part in enumerate(parts) for number in part.stale),
        calls=calls,
        threads=_chained(part.threads for part in parts),
        errors=_all_errors(parts),
        overflow=sum(part.overflow for part in parts),
        environment=_environment(parts, processes),
        cells=tuple(dict.fromkeys(_chained(part.cells for part in parts))),
        compilations=_compilations(parts),
        sample_values=sample_values,
        not_finite=_moved(parts, "not_finite"),
        ahead=parts[0].ahead,
        running=_moved(parts, "running"),
        processes=tuple(processes),
        workers=_workers(parts, processes),
        not_kept=_not_kept(parts),
    )


def _check(recordings: Sequence[Recording]) -> None:
    if not recordings:
        raise ValueError("cannot merge recordings: there is none. Pass one of each process.")
    for number, recording in enumerate(recordings):
        if recording.processes:
            raise ValueError(
                f"cannot merge recordings: number {number} is of {len(recording.processes)} "
                "processes already. Pass what each process recorded by itself."
            )
    if len({recording.ahead for recording in recordings}) > 1:
        raise ValueError(
            "cannot merge recordings: some are of jaxcb.explain, where nothing ran, and some are "
            "not. Pass recordings of one kind."
        )


def _part(recording: Recording, process: Process) -> Recording:
    """`recording` with its facts told to be of `process`, and its times those of process 0."""

    def of(program: Program) -> Program:
        return program._replace(process=process.number)

    calls = recording.calls.copy()
    calls["start_ns"] += process.offset_ns
    calls["end_ns"] += process.offset_ns
    named = [f"process {process.number} · {thread}" for thread in recording.threads]
    return dataclasses.replace(
        recording,
        calls=calls,
        threads=tuple(named),
        lowered=tuple(
            dataclasses.replace(
                fact, process=process.number, program=fact.program and of(fact.program)
            )
            for fact in recording.lowered
        ),
        outcomes=tuple(
            dataclasses.replace(one, program=of(one.program)) for one in recording.outcomes
        ),
        runs={of(program): count for program, count in recording.runs.items()},
        compilations=tuple(
            one._replace(
                program=of(one.program), end_ns=one.end_ns and one.end_ns + process.offset_ns
            )
            for one in recording.compilations
        ),
        running=tuple(
            one._replace(thread=f"process {process.number} · {one.thread}")
            for one in recording.running
        ),
    )


class _Files:
    """Names of notebook cells, which each kernel chooses for itself: the first process's for all.

    The kernel of a front end names a cell by its own number and the cell's text, IPython by the
    cell's number and its text.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}  # by text, and which one of that text

    def joined(self, recording: Recording) -> Recording:
        """`recording` with cells named as in those that came before."""
        sites = [
            *recording.bound,
            *(fact.site for fact in recording.lowered),
            *(outcome.site for outcome in recording.outcomes),
        ]
        cells = dict.fromkeys([*recording.cells, *(site.file for site in sites if site.cell)])
        seen: Counter[str] = Counter()
        names: dict[str, str] = {}
        for cell in cells:
            text = _text_of(cell)
            names[cell] = self._names.setdefault((text, seen[text]), cell)
            seen[text] += 1
        bound: Counter[Site] = Counter()
        for site, count in recording.bound.items():
            bound[_renamed(site, names)] += count
        return dataclasses.replace(
            recording,
            bound=bound,
            lowered=tuple(_with_renamed(fact, names) for fact in recording.lowered),
            outcomes=tuple(_with_renamed(outcome, names) for outcome in recording.outcomes),
            cells=tuple(names[cell] for cell in recording.cells),
        )


def _text_of(cell: str) -> str:
    """What stands for the text of a cell in its file name: the hash at its end."""
    name = cell.replace("\\", "/").rsplit("/", 1)[-1]
    return name.rsplit("-", 1)[-1] if "ipython-input" in name else name


def _renamed(site: Site, names: Mapping[str, str]) -> Site:
    callers = tuple(one._replace(file=names.get(one.file, one.file)) for one in site.callers)
    return dataclasses.replace(site, file=names.get(site.file, site.file), callers=callers)


def _with_renamed(fact: Any, names: Mapping[str, str]) -> Any:
    return dataclasses.replace(fact, site=_renamed(fact.site, names))


def _starts(lengths: Iterable[int]) -> list[int]:
    """Where each part begins when all stand one after the other."""
    return np.cumsum([0, *lengths]).tolist()[:-1]


def _chained(parts: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(one for part in parts for one in part)


def _all_errors(parts: Sequence[Recording]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_chained(part.errors for part in parts)))


def _moved(parts: Sequence[Recording], name: str) -> tuple[Any, ...]:
    """Facts that refer to `Recording.lowered`, by their numbers among all."""
    first = _starts([len(part.lowered) for part in parts])
    return _chained(
        (one._replace(lowered=first[n] + one.lowered) for one in getattr(part, name))
        for n, part in enumerate(parts)
    )


def _not_kept(parts: Sequence[Recording]) -> tuple[NotKept, ...]:
    """Calls without rows, with the numbers of sites and errors among all."""
    errors = _error_numbers(parts)
    first = _starts([len(part.lowered) for part in parts])
    return _chained(
        (
            one._replace(lowered=first[n] + one.lowered, error=int(errors[n][one.error]))
            for one in part.not_kept
        )
        for n, part in enumerate(parts)
    )


def _error_numbers(parts: Sequence[Recording]) -> list[np.ndarray]:
    """For each part: which number each of its errors has among all; 0 stands for none."""
    errors = {text: number for number, text in enumerate(_all_errors(parts), 1)}
    return [np.array([0, *map(errors.__getitem__, part.errors)]) for part in parts]


def _numbered(parts: Sequence[Recording]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """All calls, by their end, and all sample values: numbers of one part follow those of another."""
    errors = _error_numbers(parts)
    first_lowered = _starts([len(part.lowered) for part in parts])
    first_thread = _starts([len(part.threads) for part in parts])
    tables, sample_values, crossings = [], [], 0
    for n, part in enumerate(parts):
        calls, kept, count = _with_crossings_from(crossings, part)
        calls["lowered"] += first_lowered[n]
        calls["thread"] += first_thread[n]
        calls["error"] = errors[n][calls["error"]]
        tables.append(calls)
        sample_values += [one._replace(lowered=first_lowered[n] + one.lowered) for one in kept]
        crossings += count
    table = np.concatenate(tables)
    table = table[np.argsort(table["end_ns"], kind="stable")]
    table.flags.writeable = False
    return table, tuple(sample_values)


def _with_crossings_from(first: int, part: Recording) -> tuple[np.ndarray, list[SampleValues], int]:
    """Calls and sample values of `part` with their crossings counted from `first`, and how many.

    Counted anew: a recorder that has run for long counts far.
    """
    calls = part.calls.copy()
    told = np.array([one.crossing for one in part.sample_values], np.int64)
    distinct, place = np.unique(np.concatenate([calls["crossing"], told]), return_inverse=True)
    place += first
    calls["crossing"] = place[: len(calls)]
    numbers = place[len(calls) :].tolist()
    sample_values = [
        one._replace(crossing=n) for one, n in zip(part.sample_values, numbers, strict=True)
    ]
    return calls, sample_values, len(distinct)


def _workers(parts: Sequence[Recording], processes: Sequence[Process]) -> tuple[Worker, ...]:
    """By their threads' numbers among all; their clocks are off by what their process's is, too."""
    first = _starts([len(part.threads) for part in parts])
    return _chained(
        (
            one._replace(
                thread=first[n] + one.thread, clock_error_ns=one.clock_error_ns + process.error_ns
            )
            for one in part.workers
        )
        for n, (part, process) in enumerate(zip(parts, processes, strict=True))
    )


def _compilations(parts: Sequence[Recording]) -> tuple[Any, ...]:
    """With functions and code counted on, so that those of two processes are not taken for one."""
    found, function, code = [], 0, 0
    for part in parts:
        found += [
            one._replace(
                function=one.function and one.function + function, code=one.code and one.code + code
            )
            for one in part.compilations
        ]
        function = max((one.function for one in found), default=0)
        code = max((one.code for one in found), default=0)
    return tuple(found)


def _environment(parts: Sequence[Recording], processes: Sequence[Process]) -> dict[str, str]:
    """What is the same in all, what each one has where it is not, and how clocks were compared."""
    found = {}
    for name in dict.fromkeys(_chained(part.environment for part in parts)):
        values: dict[str, list[str]] = {}
        for part, process in zip(parts, processes, strict=True):
            values.setdefault(part.environment.get(name, "?"), []).append(str(process.number))
        if len(values) == 1:
            (found[name],) = values
        else:
            found[name] = "; ".join(
                f"{value} (process {', '.join(whose)})" for value, whose in values.items()
            )
    found["processes"] = str(len(parts))
    worst = max(process.error_ns for process in processes)
    found["clocks"] = f"compared, within {worst / 1000:,.0f} µs" if worst else "one for all"
    return found
