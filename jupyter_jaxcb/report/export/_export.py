"""Register the file formats by suffix, and the texts that `print` shows."""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from ...recording import FORMATS, TEXTS, Matrix, Outcome, Recording
from ..frontend import to_sites
from ..profile import to_markdown, to_text
from ..text import NO_CALLBACKS, matrix_to_text, outcome_to_text, plain_words
from ._csv import write_csv
from ._page import NOTHING, versions, write_page
from ._perfetto import write_perfetto


def export(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write `recording` to a file, as ``recording.save(path)``, which lists the formats.

    Args:
        recording: ``r.recording`` of a `jupyter_jaxcb.record` block.
        path: the file to write; its suffix selects the format.

    Raises:
        TypeError: `recording` is not a `Recording`.
        ValueError: the suffix is unknown; the message lists the known ones.
        OSError: the file cannot be written, as for `Recording.save`.

    >>> import pathlib, tempfile, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = double(np.float32(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "calls.csv")
    ...     jaxcb.export(r.recording, path)
    ...     path.read_text().splitlines()[0][:45]
    'start_ns,duration_ns,crossing,element,version'
    """
    __tracebackhide__ = True
    if not isinstance(recording, Recording):
        raise TypeError(
            f"cannot export a {type(recording).__name__}, only a Recording. Pass r.recording, "
            "where r is the value of record()."
        )
    recording.save(path)


def _printed(recording: Recording) -> str:
    return to_text(recording) or (NO_CALLBACKS if recording.ahead else "")


def _nothing(recording: Recording) -> str:
    return NO_CALLBACKS if recording.ahead else NOTHING


def _write_text(recording: Recording, file: BinaryIO) -> None:
    text = f"{to_text(recording) or _nothing(recording)}\n{versions(recording)}\n"
    file.write(text.encode())


def _write_markdown(recording: Recording, file: BinaryIO) -> None:
    environment = plain_words(versions(recording))
    text = f"{to_markdown(recording) or _nothing(recording)}\n\n{environment}\n"
    file.write(text.encode())


def _write_sites(recording: Recording, file: BinaryIO) -> None:
    file.write(f"{json.dumps(to_sites(recording), indent=1)}\n".encode())


_OF_SITES = {".md": _write_markdown, ".sites.json": _write_sites, ".txt": _write_text}
OF_SITES = tuple(_OF_SITES)  # suffixes of reports, which are short enough to print
FORMATS.update(
    {
        ".html": write_page,
        ".csv": write_csv,
        ".perfetto.json": write_perfetto,
        ".trace.json": write_perfetto,
        **_OF_SITES,
    }
)
TEXTS.update({Recording: _printed, Matrix: matrix_to_text, Outcome: outcome_to_text})
