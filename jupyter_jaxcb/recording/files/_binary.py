r"""The compact file format of recordings: the calls as columns, everything else as JSON, in gzip.

Unpacked, it begins with ``jaxcb\r\n``, the schema (u32), the size of the JSON in bytes (u64) and
the number of host calls (u64), all little-endian. The JSON follows, then the columns of `ROW`, one
after the other. The reader compares the sizes with its memory limit before it reads more.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any, BinaryIO

import numpy as np

from .._columns import ROW
from .._recorded_facts import RecordedFacts
from . import _json
from ._decode import MOST, RecordingFileError, parsed_bytes

MAGIC = b"\x1f\x8b"  # of gzip
_HEAD = struct.Struct("<7sIQQ")
_NAME = b"jaxcb\r\n"
_COPIES = 2  # of the rows while reading: the columns, and the rows


def write_binary(recording: RecordedFacts, file: BinaryIO) -> None:
    """Write `recording` in the compact format."""
    facts = _json.facts_to_json(recording).encode()
    # Neither the time nor the name of the file, so that equal recordings are equal files.
    with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed:
        packed.write(_HEAD.pack(_NAME, _json.SCHEMA, len(facts), len(recording.calls)))
        packed.write(facts)
        for name in ROW.names or ():
            packed.write(recording.calls[name].tobytes())


def read_binary(file: BinaryIO, limit_bytes: int) -> dict[str, Any]:
    """Read the fields of a recording from `file`, which is positioned at its beginning.

    Raises:
        RecordingFileError: it is truncated or damaged, has another schema, or needs more memory
            than `limit_bytes`.
    """
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            facts, calls = _read(unpacked, limit_bytes)
    except EOFError:
        raise _damaged("it is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(str(error)) from None
    return _json.with_calls(_json.facts(facts), calls)


def _read(file: gzip.GzipFile, limit_bytes: int) -> tuple[bytes, np.ndarray]:
    name, schema, facts_bytes, rows = _HEAD.unpack(_exactly(file, _HEAD.size))
    if name != _NAME:
        raise _damaged("it does not contain a recording")
    _json.check_schema(schema)
    what = f"{rows:,} host calls and {facts_bytes:,} bytes of facts"
    taken = rows * ROW.itemsize * _COPIES
    if taken + facts_bytes > limit_bytes:
        raise too_large(what, taken + facts_bytes * MOST)
    facts = _exactly(file, facts_bytes)
    needed = taken + parsed_bytes([facts])
    if needed > limit_bytes:
        raise too_large(what, needed)
    columns = [_exactly(file, rows * ROW[name].itemsize) for name in ROW.names or ()]
    if file.read(1):
        raise _damaged("it has extra bytes at its end")
    calls = np.empty(rows, ROW)
    for name, column in zip(ROW.names or (), columns, strict=True):
        calls[name] = np.frombuffer(column, ROW[name])
    return facts, calls


def _exactly(file: gzip.GzipFile, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found


def too_large(what: str, needed: int) -> RecordingFileError:
    """Return the error for a file that would take more memory than the limit."""
    return RecordingFileError(
        f"cannot read this recording: {what} may take {needed:,} bytes of memory, more than the "
        f"limit. If you trust the file, call load(path, limit_bytes={needed}), or run the export "
        f"command with --limit-bytes {needed}."
    )


def _damaged(why: str) -> RecordingFileError:
    return RecordingFileError(
        f"cannot read this recording: the file is damaged ({why}). Save the recording again."
    )
