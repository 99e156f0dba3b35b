"""Merge the recordings of several processes into one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._facts import NotFiniteCall, NotKept, ObjectUse, Process, Program, SampleValues, Site, Worker
from ._recording import Recording


def merged(recordings: Sequence[Recording], processes: Sequence[Process] = ()) -> Recording:
    """Merge the recordings of several processes into one.

    Calls, programs and outcomes keep the number of their process. Equal sites become one site;
    notebook cells of equal text are equal, whatever their kernels name them. Times are shifted by
    the offset of their process, and calls are sorted by their end. Profiles are left out.

    Args:
        recordings: one for each process.
        processes: the processes, in the same order; by default they are numbered from 0, without
            names and clock offsets.

    Raises:
        ValueError: there are no recordings, one of them is already merged, or only some of them
            come from `jaxcb.explain`.
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
    """Concatenate the recordings of all processes, with calls sorted by their end."""
    calls, sample_values, not_finite_calls = _numbered(parts)
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
        not_finite_calls=not_finite_calls,
        ahead=parts[0].ahead,
        running=_moved(parts, "running"),
        processes=tuple(processes),
        workers=_workers(parts, processes),
        not_kept=_not_kept(parts),
        queue=_moved(parts, "queue"),
        masks=_moved(parts, "masks"),
        objects=_objects(parts),
        wall_ns=max(part.wall_ns for part in parts),
        late_ns=max(part.late_ns for part in parts),
    )


def _check(recordings: Sequence[Recording]) -> None:
    if not recordings:
        raise ValueError("cannot merge recordings: there are none. Pass one for each process.")
    for number, recording in enumerate(recordings):
        if recording.processes:
            raise ValueError(
                f"cannot merge recordings: number {number} already has {len(recording.processes)} "
                "processes. Pass the recording of each single process."
            )
    if len({recording.ahead for recording in recordings}) > 1:
        raise ValueError(
            "cannot merge recordings of jaxcb.explain, where nothing ran, with others. Pass "
            "recordings of one kind."
        )


def _part(recording: Recording, process: Process) -> Recording:
    """Assign the facts of `recording` to `process`, with times of the clock of process 0."""

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
    """File names of notebook cells: each kernel chooses its own, the first one's are used for all.

    ipykernel builds the name from a number of the kernel and the text of the cell, IPython from
    the number of the cell and its text.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}  # by text, and position among equal texts

    def joined(self, recording: Recording) -> Recording:
        """Rename the cells of `recording` as in the recordings before it."""
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
    """Return the hash of the cell's text at the end of its file name."""
    name = cell.replace("\\", "/").rsplit("/", 1)[-1]
    return name.rsplit("-", 1)[-1] if "ipython-input" in name else name


def _renamed(site: Site, names: Mapping[str, str]) -> Site:
    callers = tuple(one._replace(file=names.get(one.file, one.file)) for one in site.callers)
    return dataclasses.replace(site, file=names.get(site.file, site.file), callers=callers)


def _with_renamed(fact: Any, names: Mapping[str, str]) -> Any:
    return dataclasses.replace(fact, site=_renamed(fact.site, names))


def _starts(lengths: Iterable[int]) -> list[int]:
    """Return where each part begins when all are concatenated."""
    return np.cumsum([0, *lengths]).tolist()[:-1]


def _chained(parts: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(one for part in parts for one in part)


def _all_errors(parts: Sequence[Recording]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_chained(part.errors for part in parts)))


def _moved(parts: Sequence[Recording], name: str) -> tuple[Any, ...]:
    """Return the facts in field `name` with indices into the merged `Recording.lowered`."""
    first = _starts([len(part.lowered) for part in parts])
    return _chained(
        (one._replace(lowered=first[n] + one.lowered) for one in getattr(part, name))
        for n, part in enumerate(parts)
    )


def _objects(parts: Sequence[Recording]) -> tuple[ObjectUse, ...]:
    """Return the uses of host objects, summed over the processes."""
    names = dict.fromkeys(use.name for part in parts for use in part.objects)
    found = [[use[1:] for part in parts for use in part.objects if use.name == n] for n in names]
    sums = [map(sum, zip(*uses, strict=True)) for uses in found]
    return tuple(ObjectUse(name, *counts) for name, counts in zip(names, sums, strict=True))


def _not_kept(parts: Sequence[Recording]) -> tuple[NotKept, ...]:
    """Return the calls without rows, with merged indices of sites and errors."""
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
    """Return, for each part, the merged number of each of its errors; 0 is no error."""
    errors = {text: number for number, text in enumerate(_all_errors(parts), 1)}
    return [np.array([0, *map(errors.__getitem__, part.errors)]) for part in parts]


def _numbered(
    parts: Sequence[Recording],
) -> tuple[np.ndarray, tuple[SampleValues, ...], tuple[NotFiniteCall, ...]]:
    """Return all calls, sorted by their end, and all facts about calls, with merged numbers."""
    errors = _error_numbers(parts)
    first_lowered = _starts([len(part.lowered) for part in parts])
    first_thread = _starts([len(part.threads) for part in parts])
    tables, sample_values, not_finite, crossings = [], [], [], 0
    for n, part in enumerate(parts):
        calls, numbers = _with_crossings_from(crossings, part)
        calls["lowered"] += first_lowered[n]
        calls["thread"] += first_thread[n]
        calls["error"] = errors[n][calls["error"]]
        tables.append(calls)
        first = first_lowered[n]
        sample_values += _renumbered(part.sample_values, first, numbers)
        not_finite += _renumbered(part.not_finite_calls, first, numbers)
        crossings += len(numbers)
    table = np.concatenate(tables)
    table = table[np.argsort(table["end_ns"], kind="stable")]
    table.flags.writeable = False
    return table, tuple(sample_values), tuple(not_finite)


def _renumbered(facts: Iterable[Any], first: int, crossings: Mapping[int, int]) -> list[Any]:
    """Return facts about calls with sites from `first` on, and with new numbers of crossings."""
    return [
        one._replace(lowered=first + one.lowered, crossing=crossings[one.crossing]) for one in facts
    ]


def _with_crossings_from(first: int, part: Recording) -> tuple[np.ndarray, dict[int, int]]:
    """Renumber the crossings of the calls of `part` from `first` on.

    The numbers are made consecutive, because those of a long-running recorder are large.

    Returns:
        The calls, and the new number of each crossing, also of those without calls.
    """
    calls = part.calls.copy()
    facts = np.array(
        [one.crossing for one in (*part.sample_values, *part.not_finite_calls)], np.int64
    )
    distinct, place = np.unique(np.concatenate([calls["crossing"], facts]), return_inverse=True)
    calls["crossing"] = place[: len(calls)] + first
    return calls, {old: new for new, old in enumerate(distinct.tolist(), first)}


def _workers(parts: Sequence[Recording], processes: Sequence[Process]) -> tuple[Worker, ...]:
    """Return the workers with merged thread numbers and the clock errors of their processes."""
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
    """Renumber functions and code, so that those of different processes stay distinct."""
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
    """Merge the environments: equal values once, others by process, and the clock comparison."""
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
    found["clocks"] = f"compared, within {worst / 1000:,.0f} µs" if worst else "shared"
    return found
