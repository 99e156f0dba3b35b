"""Save and load recordings in the format that the suffix selects."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from .._recorded_facts import RecordedFacts
from . import _json
from ._binary import MAGIC, read_binary, too_large, write_binary
from ._decode import RecordingFileError, parsed_bytes

LIMIT_BYTES = 1 << 30  # default memory limit of reading a file
_PIECE = 1 << 16  # bytes read at a time
Write = Callable[[Any, BinaryIO], None]  # writes a Recording to a file


def write_json(recording: RecordedFacts, file: BinaryIO) -> None:
    """Write the JSON of `recording`, for `load`."""
    for text in _json.chunks(recording):
        file.write(text.encode())


# By suffix; the longest match wins. The layer `report` adds more formats.
FORMATS: dict[str, Write] = {".json": write_json, ".jaxcb": write_binary}
READABLE = (".jaxcb", ".json")


def save(recording: RecordedFacts, path: str | os.PathLike[str]) -> None:
    """See `Recording.save`."""
    write = FORMATS[_suffix(Path(path))]
    target = os.path.realpath(path)  # a symbolic link is kept, and its target replaced
    try:
        mode = _mode(target)
        if mode is None or stat.S_ISREG(mode):
            _replace(target, mode, lambda file: write(recording, file))
        else:  # a device, a pipe
            with open(target, "wb") as file:
                write(recording, file)
    except OSError as error:
        if error.errno is None:
            raise
        # With the user's path, not that of the temporary file.
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from None


def _mode(path: str) -> int | None:
    """Return the type and permissions of a file; None if it does not exist."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _replace(target: str, mode: int | None, write: Callable[[BinaryIO], None]) -> None:
    """Write to a temporary file beside the target first, so that a failure changes nothing."""
    part = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
    # Not tempfile.mkstemp, whose files are private: mode "x" follows the umask.
    with open(part, "xb") as file:
        try:
            if mode is not None:
                os.chmod(part, stat.S_IMODE(mode))
            write(file)
            file.close()
            os.replace(part, target)
        except BaseException:
            file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if the suffix of `path` is unknown."""
    _suffix(Path(path))


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise OSError if the folder of `path` does not exist, or nothing can be written to it."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"cannot write {os.fspath(path)!r}: there is no folder {str(folder)!r}. Create it "
            "first, or name a file in another folder."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"cannot write {os.fspath(path)!r}: the folder {str(folder)!r} is not writable. Name a "
            "file in another folder."
        )


def _suffix(path: Path) -> str:
    found = [suffix for suffix in FORMATS if path.name.lower().endswith(suffix)]
    if not found:
        raise ValueError(
            f"unknown file format: {path.name or os.fspath(path)!r}. End the name with one of "
            f"{', '.join(sorted(FORMATS))}."
        )
    return max(found, key=len)


def read(path: str | os.PathLike[str], limit_bytes: int, *, views: bool = False) -> dict:
    """Read the fields of the recording in a file; see `load` and `load_calls`."""
    __tracebackhide__ = True
    try:
        return _read(path, limit_bytes, views)
    except RecordingFileError as error:
        raise RecordingFileError(f"{os.fspath(path)!r}: {error}") from None


def _read(path: str | os.PathLike[str], limit_bytes: int, views: bool) -> dict:
    with open(path, "rb") as file:
        begin = file.read(len(MAGIC))
        file.seek(0)
        if begin == MAGIC:
            return read_binary(file, limit_bytes)
        if not begin.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            raise RecordingFileError(
                f"cannot read this file: it is not a recording. Pass a {' or '.join(READABLE)} "
                "file that recording.save wrote."
            )
        size = os.fstat(file.fileno()).st_size
        needed = parsed_bytes(iter(lambda: file.read(_PIECE), b""))
        if needed > limit_bytes:
            raise too_large(f"{size:,} bytes of JSON", needed)
        file.seek(0)
        return _json.fields(file.read(size + 1), views=views)
