r"""The binary file format of recordings: the calls as columns, everything else as JSON.

The file begins with ``\x89jaxcb\r\n``, the schema (u32), the size of the JSON in bytes (u64) and
the number of host calls (u64), all little-endian. Blocks follow: unpacked size, packed size and
CRC-32 of the unpacked bytes (u32 each), then the bytes packed by zlib. The first blocks are the
JSON, the others have up to 65,536 calls each: the columns of `ROW`, one after the other, each as
byte planes, with times as differences. The reader checks the sizes in the header against its
memory limit before it allocates.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from .._columns import ROW
from .._recorded_facts import RecordedFacts
from . import _json
from ._decode import RecordingFileError
from ._memory_limit import MOST, parsed_bytes

MAGIC = b"\x89jaxcb\r\n"
_HEAD = struct.Struct("<IQQ")
_BLOCK = struct.Struct("<III")
_ROWS = 1 << 16  # per block
_BYTES = 1 << 20  # per block of JSON
_COPIES = 2  # of the rows while reading: the blocks, and their concatenation


def write_binary(recording: RecordedFacts, file: BinaryIO) -> None:
    """Write `recording` in the binary format."""
    facts = _json.facts_to_json(recording).encode()
    file.write(MAGIC + _HEAD.pack(_json.SCHEMA, len(facts), len(recording.calls)))
    for start in range(0, len(facts), _BYTES):
        _write_block(file, facts[start : start + _BYTES])
    for start in range(0, len(recording.calls), _ROWS):
        _write_block(file, _packed(recording.calls[start : start + _ROWS]))


def read_binary(file: BinaryIO, limit_bytes: int) -> dict[str, Any]:
    """Read the fields of a recording from `file`, which is positioned at its beginning.

    Raises:
        RecordingFileError: it is truncated or damaged, has another schema, or needs more memory
            than `limit_bytes`.
    """
    head = file.read(len(MAGIC) + _HEAD.size)
    if len(head) < len(MAGIC) + _HEAD.size:
        raise _truncated("in its header")
    schema, facts_bytes, rows = _HEAD.unpack(head[len(MAGIC) :])
    _json.check_schema(schema)
    what = f"{rows:,} host calls and {facts_bytes:,} bytes of facts"
    taken = rows * ROW.itemsize * _COPIES
    if taken + facts_bytes > limit_bytes:
        raise too_large(what, taken + facts_bytes * MOST)
    facts = [_read_block(file, size) for size in _sizes(facts_bytes, _BYTES)]
    needed = taken + parsed_bytes(facts)
    if needed > limit_bytes:
        raise too_large(what, needed)
    # Block by block, so that no memory is allocated for rows that the file does not contain.
    blocks = [
        _unpacked(_read_block(file, count * ROW.itemsize), count) for count in _sizes(rows, _ROWS)
    ]
    if file.read(1):
        raise RecordingFileError(
            "cannot read this recording: it has extra bytes at its end. The file is damaged."
        )
    calls = np.concatenate(blocks) if blocks else np.empty(0, ROW)
    return _json.with_calls(_json.facts(b"".join(facts)), calls)


def too_large(what: str, needed: int) -> RecordingFileError:
    """Return the error for a file that would take more memory than the limit."""
    return RecordingFileError(
        f"cannot read this recording: {what} may take {needed:,} bytes of memory, more than the "
        f"limit. If you trust the file, call load(path, limit_bytes={needed})."
    )


def _truncated(where: str) -> RecordingFileError:
    return RecordingFileError(
        f"cannot read this recording: the file is truncated {where}. Save the recording again."
    )


def _sizes(total: int, most: int) -> Iterator[int]:
    for start in range(0, total, most):
        yield min(most, total - start)


def _write_block(file: BinaryIO, raw: bytes) -> None:
    packed = zlib.compress(raw, 1)
    file.write(_BLOCK.pack(len(raw), len(packed), zlib.crc32(raw)) + packed)


def _read_block(file: BinaryIO, size: int) -> bytes:
    """Read the next block, which must have `size` bytes unpacked."""
    head = file.read(_BLOCK.size)
    if len(head) < _BLOCK.size:
        raise _truncated("before its last block")
    raw_bytes, packed_bytes, checksum = _BLOCK.unpack(head)
    if raw_bytes != size or packed_bytes > size + size // 100 + 1_000:
        raise _damaged(f"a block claims {raw_bytes:,} bytes, {packed_bytes:,} packed")
    packed = file.read(packed_bytes)
    if len(packed) < packed_bytes:
        raise _truncated("within a block")
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(packed, size + 1)  # limits the memory a crafted block can take
    except zlib.error as error:
        raise _damaged(f"a block cannot be unpacked ({error})") from None
    if len(raw) != size or not unpacking.eof or unpacking.unused_data:
        raise _damaged("a block does not have the size in its header")
    if zlib.crc32(raw) != checksum:
        raise _damaged("the checksum of a block is wrong")
    return raw


def _damaged(why: str) -> RecordingFileError:
    return RecordingFileError(f"cannot read this recording: {why}. The file is damaged.")


def _packed(rows: np.ndarray) -> bytes:
    columns = {name: np.ascontiguousarray(rows[name]) for name in ROW.names or ()}
    columns["end_ns"] = columns["end_ns"] - columns["start_ns"]
    columns["start_ns"] = np.diff(columns["start_ns"], prepend=np.int64(0))
    columns["crossing"] = np.diff(columns["crossing"], prepend=np.uint32(0))
    return b"".join(_planes(column) for column in columns.values())


def _planes(column: np.ndarray) -> bytes:
    return column.view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()


def _unpacked(raw: bytes, count: int) -> np.ndarray:
    rows, offset = np.empty(count, ROW), 0
    for name in ROW.names or ():
        kind = ROW[name]
        size = kind.itemsize * count
        planes = np.frombuffer(raw, np.uint8, size, offset).reshape(kind.itemsize, count)
        rows[name] = np.ascontiguousarray(planes.T).view(kind).reshape(count)
        offset += size
    for name in ("start_ns", "crossing"):  # the sums wrap around, as the differences did
        rows[name] = np.cumsum(rows[name], dtype=ROW[name])
    rows["end_ns"] += rows["start_ns"]
    return rows
