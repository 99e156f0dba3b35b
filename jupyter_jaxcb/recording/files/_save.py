r"""Save and load recordings in the format that the suffix selects.

A ``.json`` file is the JSON of a recording. A ``.jaxcb`` file is packed by gzip; unpacked it begins
with ``jaxcb\r\n``, the schema (u32), the size of the JSON in bytes (u64) and the number of host
calls (u64), all little-endian. The JSON without the host calls follows, then the columns of `ROW`,
one after the other. The reader compares the sizes with its memory limit before it reads more.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import stat
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._facts import ROW
from ._codec import (
    COLUMNS,
    MOST,
    SCHEMA,
    RecordingFileError,
    check_schema,
    chunks,
    decoded,
    facts_to_json,
    parsed,
    parsed_bytes,
)

LIMIT_BYTES = 1 << 30  # default memory limit of reading a file
_PIECE = 1 << 16  # bytes read at a time
_MAGIC = b"\x1f\x8b"  # of gzip
_HEAD = struct.Struct("<7sIQQ")
_NAME = b"jaxcb\r\n"
_COPIES = 2  # of the rows while reading: the columns, and the rows


def write_json(recording: Any, file: BinaryIO) -> None:
    """Write the JSON of `recording`, for `load`."""
    for text in chunks(recording):
        file.write(text.encode())


def write_packed(recording: Any, file: BinaryIO) -> None:
    """Write `recording` in the compact format, for `load`."""
    facts = facts_to_json(recording).encode()
    # Neither the time nor the name of the file, so that equal recordings are equal files.
    with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed:
        packed.write(_HEAD.pack(_NAME, SCHEMA, len(facts), len(recording.calls)))
        packed.write(facts)
        for name in COLUMNS:
            packed.write(recording.calls[name].tobytes())


# By suffix; the longest match wins. The layer `report` adds more formats.
FORMATS: dict[str, Callable[[Any, BinaryIO], None]] = {
    ".json": write_json,
    ".jaxcb": write_packed,
}


def check_path(path: str | os.PathLike[str]) -> str:
    """Return the suffix of `path`; raise ValueError if it is unknown."""
    name = Path(path).name
    suffixes = [suffix for suffix in FORMATS if name.lower().endswith(suffix)]
    if not suffixes:
        raise ValueError(
            f"unknown file format: {name or os.fspath(path)!r}. End the name with one of "
            f"{', '.join(sorted(FORMATS))}."
        )
    return max(suffixes, key=len)


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


def save(recording: Any, path: str | os.PathLike[str]) -> None:
    """See `Recording.save`. A file is replaced whole or not at all."""
    write = FORMATS[check_path(path)]
    target = os.path.realpath(path)  # a symbolic link is kept, and its target replaced
    try:
        try:
            mode = os.stat(target).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and not stat.S_ISREG(mode):  # a device, a pipe
            with open(target, "wb") as file:
                write(recording, file)
        else:
            _replace(target, mode, lambda file: write(recording, file))
    except OSError as error:
        if error.errno is None:
            raise
        # With the user's path, not that of the temporary file.
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from None


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


def read_json(kind: Any, text: str | bytes) -> Any:
    """See `Recording.from_json`; `kind` is the class `Recording`."""
    return decoded(kind, parsed(text))


def read(kind: Any, path: str | os.PathLike[str], limit_bytes: int) -> Any:
    """See `load`; `kind` is the class `Recording`."""
    __tracebackhide__ = True
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
            file.seek(0)
            if begin == _MAGIC:
                return decoded(kind, _unpacked(file, limit_bytes))
            if not begin.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                check_schema(None)
            size = os.fstat(file.fileno()).st_size
            _check_limit(
                f"{size:,} bytes of JSON",
                parsed_bytes(iter(lambda: file.read(_PIECE), b"")),
                limit_bytes,
            )
            file.seek(0)
            return read_json(kind, file.read(size + 1))
    except EOFError:
        why = "it is truncated"
    except (gzip.BadGzipFile, zlib.error) as error:
        why = str(error)
    except RecordingFileError as error:
        raise RecordingFileError(f"{os.fspath(path)!r}: {error}") from None
    raise RecordingFileError(
        f"{os.fspath(path)!r}: cannot read this recording: the file is damaged ({why}). Save the "
        "recording again."
    )


def _unpacked(file: BinaryIO, limit_bytes: int) -> dict[str, Any]:
    """Return the parsed JSON of a compact file, with its host calls as arrays."""
    with gzip.GzipFile(fileobj=file) as unpacked:

        def exactly(size: int) -> bytes:
            if len(content := unpacked.read(size)) < size:
                raise EOFError
            return content

        name, schema, facts_bytes, rows = _HEAD.unpack(exactly(_HEAD.size))
        if name != _NAME:
            check_schema(None)
        check_schema(schema)
        what = f"{rows:,} host calls and {facts_bytes:,} bytes of facts"
        taken = rows * ROW.itemsize * _COPIES
        if taken + facts_bytes > limit_bytes:
            _check_limit(what, taken + facts_bytes * MOST, limit_bytes)
        text = exactly(facts_bytes)
        _check_limit(what, taken + parsed_bytes([text]), limit_bytes)
        columns = {
            name: np.frombuffer(exactly(rows * ROW[name].itemsize), ROW[name]) for name in COLUMNS
        }
        if unpacked.read(1):
            raise zlib.error("it has extra bytes at its end")
    return {**parsed(text), "calls": columns}


def _check_limit(what: str, needed: int, limit_bytes: int) -> None:
    if needed > limit_bytes:
        raise RecordingFileError(
            f"cannot read this recording: {what} may take {needed:,} bytes of memory, more than "
            f"the limit. If you trust the file, call load(path, limit_bytes={needed}), or run the "
            f"export command with --limit-bytes {needed}."
        )
