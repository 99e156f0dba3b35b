"""What was recorded: an immutable value, with its text and its files."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from ._recorded_facts import RecordedFacts
from ._str import printed
from ._table import to_pandas
from .files import LIMIT_BYTES, fields, read, save, to_json


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Recording(RecordedFacts):
    """What happened while it was recorded.

    Attributes:
        bound: how often each site was bound, in the order they were traced or called first.
        lowered: every (site, program) that was lowered or called, calls refer to it by index.
        outcomes: what compiled programs made of each bind, of those compiled or run meanwhile.
        runs: how often each of these programs ran; those are left out whose runs cannot be seen.
        stale: those of `lowered` whose program calls an earlier registration of the function.
        calls: the host calls as a read-only structured array, one row each (`ROW`).
        threads: names of the threads that calls came from, by index.
        errors: what failing calls raised; a row's ``error`` is 1 + an index into it.
        overflow: host calls that came after the log was full: counted, not kept.
        not_kept: these by site and error.
        environment: versions and backend the statuses depend on.
        cells: file names under which the recorded notebook cell was compiled; empty in a script.
        compilations: what it took to make the programs of `outcomes` that were compiled meanwhile.
        sample_values: values of the first calls of each site; kept out of saved notebooks.
        not_finite: the sites that answered NaN or infinity. Results of more than 4,096 elements are
            looked at in sampled calls only.
        ahead: nothing ran: it was asked what the programs would do.
        running: host calls that had not come back when it ended.
        processes: whose recordings were gathered into this one; empty in the recording of one.
        workers: of executors; each is one of `threads`.
    """

    def __repr__(self) -> str:
        if self.ahead:
            statuses = ", ".join(f"{o.site.function} {o.status}" for o in self.outcomes)
            return f"<Recording of nothing run: {statuses or 'no callbacks'}>"
        sites = len({fact.site for fact in self.lowered})
        count = len(self) + self.overflow
        calls = f"{count} host call{'' if count == 1 else 's'}"
        calls += f" ({len(self)} kept)" if self.overflow else ""
        where = f" in {len(self.processes)} processes" if self.processes else ""
        return f"<Recording of {calls} from {sites} site{'' if sites == 1 else 's'}{where}>"

    def __str__(self) -> str:
        """The report of its sites, as `save` writes it to a ``.txt`` file."""
        return printed(self)

    def to_json(self) -> str:
        """The whole recording as JSON text, for `from_json`; times in nanoseconds."""
        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Recording:
        """The recording that `to_json` wrote.

        Raises:
            RecordingFileError: the text is no recording, is damaged, or of another schema; the
                message says what.
        """
        return Recording(**fields(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, in the format that the end of its name says.

        ======================================  ==================================================
        ``.jaxcb``                              all of it, compact, for `load`
        ``.json``                               all of it, for `load` and for other programs
        ``.perfetto.json``, ``.trace.json``     a timeline for ui.perfetto.dev, chrome://tracing
        ``.txt``, ``.html``                     the report of its sites
        ``.csv``                                a row for each host call
        ``.arrow``, ``.feather``, ``.parquet``  the same, where pyarrow is installed
        ======================================  ==================================================

        The first two have all there is, values of the first calls too (``record(sample_values=False)``
        keeps none).

        Raises:
            ValueError: the name ends with none of these.
            ModuleNotFoundError: pyarrow is needed and not installed.

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
        """A `pandas.DataFrame` with a row for each host call; names repeat as categories.

        Columns: ``start_ns`` (of the recorder's clock), ``duration_ns``, ``crossing``, ``element``
        (-1: none), ``version`` (of the host function's body), ``queued_ns`` (in an executor),
        ``thread``, ``error`` (missing: none), ``function``, ``flavor``, ``where``, ``file``,
        ``line``, ``callers`` (the calls that led there, innermost first), ``program`` (missing:
        eager), ``process`` (0 in the recording of one), ``device``, and the shapes that one host
        call sees, ``operands`` and ``results``.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return to_pandas(self)


def load(path: str | os.PathLike[str], *, limit_bytes: int = LIMIT_BYTES) -> Recording:
    """The recording that `Recording.save` wrote to a ``.jaxcb`` or ``.json`` file.

    Nothing in the file is executed, and everything in it is checked.

    Args:
        path: of the file.
        limit_bytes: of memory that reading it may take.

    Raises:
        RecordingFileError: it is no recording, truncated, damaged, of a newer version, or larger
            than `limit_bytes` allows.

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
    return Recording(**read(path, limit_bytes))
