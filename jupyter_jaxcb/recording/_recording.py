"""Recordings of host calls, and of one function under several transformations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._facts import (
    ROW,
    Compilation,
    Frame,
    HostCall,
    LoweredSite,
    MaskUse,
    NotFinite,
    NotFiniteCall,
    NotKept,
    ObjectUse,
    Outcome,
    Program,
    QueueUse,
    Running,
    SampleValues,
    Site,
    Worker,
    numbered,
)
from ._profile import Profile
from ._shown import BUNDLES, WIDGETS, on_one_line, printed
from ._table import to_pandas
from .files import LIMIT_BYTES, chunks, read, read_json, save


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """An immutable log of host calls, and what became of every callback.

    Attributes:
        bound: how often each site was bound, in order of the first bind.
        lowered: every (site, program) that was lowered or called; calls refer to it by index.
        outcomes: what the programs that were compiled or run made of each bind.
        runs: how often each of these programs ran; without programs whose runs are unknown.
        stale: indices into `lowered` whose program calls an earlier registration of the function.
        calls: the host calls as a read-only structured array, one row each (`ROW`).
        threads: names of the threads that made calls; calls refer to them by index.
        errors: messages of failed calls; a row's ``error`` is 1 + an index into them.
        not_kept: the host calls made after the log was full, which were only counted, by site and
            error.
        environment: versions and backend that statuses depend on.
        cells: file names under which the recorded notebook cell was compiled; empty in a script.
        numbers: the numbers of the other cells that its call sites and their callers are in, by
            file name.
        compilations: the programs that were compiled during the recording, with times.
        sample_values: values of the first calls of each site; kept out of saved notebooks.
        not_finite: the sites that returned NaN or infinity. Results of more than 4,096 elements are
            checked in sampled calls only.
        not_finite_calls: the first 10,000 of the calls that `not_finite` counts.
        ahead: whether nothing ran, as in the recordings of `jupyter_jaxcb.explain`.
        running: host calls that were still running when the recording ended.
        workers: the workers of executors; each is one of `threads`.
        queue: what happened in the queue to the crossings of queued callbacks, by site.
        masks: for how many batch elements the masks of masked calls were true, by site.
        objects: what happened to host objects, by name.
        wall_ns: how long the recorded code took; 0: unknown.
        compiled_ns: how long JAX traced, lowered and compiled meanwhile, programs without callbacks
            too; summed over threads.
        not_observed: how many of JAX's own callbacks the programs have that were compiled
            meanwhile, without being recorded.
        late_ns: how long after the code the last host call ended: a program that nobody waits for
            goes on.
        profile: where the wall time went, if `jupyter_jaxcb.profile` made the recording.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result="x")
    >>> with jaxcb.record() as r:
    ...     y = double(np.float32(3))
    >>> len(r.recording), r.recording.lowered[0].site.flavor, r.recording.errors
    (1, 'pure', ())
    """

    bound: Mapping[Site, int] = dataclasses.field(default_factory=dict)
    lowered: tuple[LoweredSite, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    runs: Mapping[Program, int] = dataclasses.field(default_factory=dict)
    stale: frozenset[int] = frozenset()
    calls: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, ROW))
    threads: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cells: tuple[str, ...] = ()
    numbers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    compilations: tuple[Compilation, ...] = ()
    sample_values: tuple[SampleValues, ...] = ()
    not_finite: tuple[NotFinite, ...] = ()
    not_finite_calls: tuple[NotFiniteCall, ...] = ()
    ahead: bool = False
    running: tuple[Running, ...] = ()
    workers: tuple[Worker, ...] = ()
    not_kept: tuple[NotKept, ...] = ()
    queue: tuple[QueueUse, ...] = ()
    masks: tuple[MaskUse, ...] = ()
    objects: tuple[ObjectUse, ...] = ()
    wall_ns: int = 0
    compiled_ns: int = 0
    late_ns: int = 0
    not_observed: int = 0
    profile: Profile | None = None

    def __len__(self) -> int:
        """Return the number of host calls in the log."""
        return len(self.calls)

    def __iter__(self) -> Iterator[HostCall]:
        """Iterate over the host calls in the order they were logged."""
        for row in self.calls.tolist():
            start, end, lowered, crossing, element, thread, version, error, *more = row
            text = self.errors[error - 1] if error else None
            yield HostCall(lowered, crossing, element, thread, start, end, version, text, *more)

    @property
    def elisions(self) -> tuple[Outcome, ...]:
        """The outcomes that are elided, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.elided)

    def where(self, site: Site | Frame) -> str:
        """Name a place: ``line 3`` in the recorded cell, ``[5] line 3``, ``model.py:12``.

        A cell whose number is not known is ``line 3, another cell``. The displays that a notebook
        saves have no numbers, so that they are the same in every run.
        """
        if not site.cell or site.file in self.cells:
            return site.where
        number = self.numbers.get(site.file, 0)
        return f"{numbered(site, number)}{', another cell' * bool(self.cells and not number)}"

    def calls_of(self, function: str) -> list[HostCall]:
        """Return the host calls of the host function named `function`."""
        return [call for call in self if self.lowered[call.lowered].site.function == function]

    @property
    def overflow(self) -> int:
        """The number of host calls made after the log was full: counted, not kept."""
        return sum(one.calls for one in self.not_kept)

    def __repr__(self) -> str:
        if self.ahead:
            statuses = ", ".join(f"{o.site.function} {o.status.words}" for o in self.outcomes)
            return on_one_line(f"<Recording without a run: {statuses or 'no callbacks'}>")
        sites = len({fact.site for fact in self.lowered})
        count = len(self) + self.overflow
        calls = f"{count} host call{'' if count == 1 else 's'}"
        calls += f" ({len(self)} kept)" if self.overflow else ""
        return f"<Recording of {calls} from {sites} site{'' if sites == 1 else 's'}>"

    def __str__(self) -> str:
        """Return the report of its sites, as `save` writes it to a ``.txt`` file."""
        return printed(self)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the host trace for a notebook in which the extension is not loaded."""
        data, metadata = BUNDLES[Recording](self)
        return (data, metadata) if data["text/plain"] else ({"text/plain": repr(self)}, {})

    def _display_(self) -> Any:
        """Return the widget that marimo shows."""
        return WIDGETS[Recording](self)

    def to_json(self) -> str:
        """Return the whole recording as JSON for `from_json`; times are in nanoseconds."""
        return "".join(chunks(self))

    @staticmethod
    def from_json(text: str) -> Recording:
        """Read the recording that `to_json` wrote.

        Raises:
            RecordingFileError: the text is not a recording, is damaged, or has another schema; the
                message says which.
        """
        return read_json(Recording, text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file; the suffix of its name selects the format.

        ===================================  =====================================================
        ``.jaxcb``                           everything, compact, for `load`
        ``.json``                            everything, for `load` and other programs
        ``.perfetto.json``, ``.trace.json``  a timeline for ui.perfetto.dev, chrome://tracing
        ``.html``                            an interactive page with everything
        ``.txt``, ``.md``                    the report of its sites, as text and Markdown
        ``.sites.json``                      the same for other programs
        ``.csv``                             a row for each host call
        ===================================  =====================================================

        The first two and the page contain everything, including the sample values
        (``record(sample_values=False)`` takes none).

        Args:
            path: the file to write.

        Raises:
            ValueError: the suffix is not one of these.
            OSError: the file cannot be written, because its folder does not exist
                (FileNotFoundError), for instance. An existing file is not changed then.

        >>> import tempfile, os, jupyter_jaxcb as jaxcb
        >>> with jaxcb.record() as r:
        ...     pass
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     r.recording.save(os.path.join(folder, "cell.jaxcb"))
        ...     jaxcb.load(os.path.join(folder, "cell.jaxcb"))
        <Recording of 0 host calls from 0 sites>
        """
        __tracebackhide__ = True
        save(self, path)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a row for each host call; names are categories.

        Columns: ``start_ns`` (of the recorder's clock), ``duration_ns``, ``crossing``, ``element``
        (-1: none), ``version`` (of the host function's body), ``queued_ns`` (in the queue or
        an executor),
        ``thread``, ``error`` (missing: none), ``function``, ``flavor``, ``where``, ``file``,
        ``line``, ``callers`` (of the call site, innermost first), ``program`` (missing: eager),
        ``device``, and the shapes that one host call sees, ``operands`` and ``results``.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return to_pandas(self)


def unnumbered(recording: Recording) -> Recording:
    """Return a recording without the numbers of cells, which differ from run to run."""
    return dataclasses.replace(recording, numbers={})


def load(path: str | os.PathLike[str], *, limit_bytes: int = LIMIT_BYTES) -> Recording:
    """Read a recording that `Recording.save` wrote to a ``.jaxcb`` or ``.json`` file.

    Nothing in the file is executed, and everything in it is checked.

    Args:
        path: the file to read.
        limit_bytes: the memory that reading may take, in bytes.

    Returns:
        A `Recording` with everything that was in the one that was saved.

    Raises:
        RecordingFileError: the file is not a recording, is truncated or damaged, has another
            schema, or would take more memory than `limit_bytes`.
        OSError: the file cannot be read, because it does not exist (FileNotFoundError), for
            instance.

    >>> import tempfile, pathlib, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = double(np.float32(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.jaxcb")
    ...     r.recording.save(path)
    ...     jaxcb.load(path)
    <Recording of 1 host call from 1 site>
    """
    __tracebackhide__ = True
    return read(Recording, path, limit_bytes)


@dataclasses.dataclass(frozen=True, repr=False)
class Matrix:
    """The callbacks of one function under several transformations.

    Attributes:
        transformations: the names of all transformations that were tried, in order.
        columns: by transformation, a recording of the compiled program, which did not run.
        refused: by transformation that JAX or a callback refuses, the error message.
    """

    transformations: tuple[str, ...]

    columns: Mapping[str, Recording]
    refused: Mapping[str, str]

    def __str__(self) -> str:
        """Return the table as plain text."""
        return printed(self)

    def __repr__(self) -> str:
        refused = f", refused: {', '.join(self.refused)}" if self.refused else ""
        return on_one_line(f"<Matrix of {', '.join(self.columns)}{refused}>")
