"""Which format a file has, by the end of its name; and what `print` shows."""

from __future__ import annotations

import os
from html import escape
from typing import BinaryIO

from ...recording import FORMATS, TEXTS, Matrix, Outcome, Recording
from ..text import matrix_to_text, outcome_to_text, to_html, to_text
from ._csv import write_csv
from ._parquet import write_arrow, write_parquet
from ._perfetto import write_perfetto


def export(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Writes `recording` to a file; ``recording.save(path)``, which says the formats.

    Args:
        recording: of `jupyter_jaxcb.record`.
        path: of the file; the end of its name says the format.

    Raises:
        TypeError: `recording` is none.
        ValueError: the name ends with none of these; the message has them.
        ModuleNotFoundError: pyarrow is needed and not installed.

    >>> import pathlib, tempfile, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = double(np.float32(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "calls.csv")
    ...     jaxcb.export(r.recording, path)
    ...     path.read_text().splitlines()[0][:42]
    'start_ns,duration_ns,crossing,element,version'
    """
    __tracebackhide__ = True
    if not isinstance(recording, Recording):
        raise TypeError(
            f"cannot export a {type(recording).__name__}: it is no recording. Pass r.recording, "
            "where r is what record() gave."
        )
    recording.save(path)


def _write_text(recording: Recording, file: BinaryIO) -> None:
    _write(file, f"{to_text(recording) or _NOTHING}\n{_versions(recording)}\n")


def _write_html(recording: Recording, file: BinaryIO) -> None:
    # Opened: a file is looked at for what is in it.
    table = to_html(recording, times=True)
    table = table.replace('<details class="jaxcb">', '<details class="jaxcb" open>', 1)
    _write(
        file,
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Host calls</title>'
        f"</head><body>{table or f'<p>{_NOTHING}</p>'}<p>{escape(_versions(recording))}</p>"
        "</body></html>\n",
    )


def _write(file: BinaryIO, text: str) -> None:
    file.write(text.encode("utf-8", "backslashreplace"))  # half of a pair in an error's message


_NOTHING = "no host calls, and no callbacks in what was compiled"


def _versions(recording: Recording) -> str:
    return ", ".join(f"{name} {value}" for name, value in recording.environment.items())


FORMATS.update(
    {
        ".txt": _write_text,
        ".html": _write_html,
        ".csv": write_csv,
        ".perfetto.json": write_perfetto,
        ".trace.json": write_perfetto,
        ".arrow": write_arrow,
        ".feather": write_arrow,
        ".parquet": write_parquet,
    }
)
TEXTS.update({Recording: to_text, Matrix: matrix_to_text, Outcome: outcome_to_text})
