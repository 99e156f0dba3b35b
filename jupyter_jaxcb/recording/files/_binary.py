r"""The compact file of a recording: everything but the calls as JSON, these as columns.

``\x89jaxcb\r\n``, the schema (u32), the bytes of JSON (u64) and the number of host calls (u64), all
little-endian. Then blocks: their length unpacked, packed, and the CRC-32 of what is unpacked (u32
each), and bytes packed by zlib. The first blocks are the JSON, the others up to 65,536 calls each:
the columns of `ROW` one after the other, each by byte planes; times as differences. What a file
says of its size is compared with what the reader allows before any memory is taken.
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
_ROWS = 1 << 16  # of a block
_BYTES = 1 << 20  # of a block of JSON
_COPIES = 2  # of the rows: block by block, and joined


def write_binary(recording: RecordedFacts, file: BinaryIO) -> None:
    """Writes `recording` in the compact format."""
    facts = _json.facts_to_json(recording).encode()
    file.write(MAGIC + _HEAD.pack(_json.SCHEMA, len(facts), len(recording.calls)))
    for start in range(0, len(facts), _BYTES):
        _write_block(file, facts[start : start + _BYTES])
    for start in range(0, len(recording.calls), _ROWS):
        _write_block(file, _packed(recording.calls[start : start + _ROWS]))


def read_binary(file: BinaryIO, limit_bytes: int) -> dict[str, Any]:
    """The fields of the recording in `file`, which is at its beginning.

    Raises:
        RecordingFileError: it is truncated or damaged, of another schema, or needs more memory than
            `limit_bytes`.
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
    # Block by block: what a header promises and a file does not hold is not set aside.
    blocks = [
        _unpacked(_read_block(file, count * ROW.itemsize), count) for count in _sizes(rows, _ROWS)
    ]
    if file.read(1):
        raise RecordingFileError(
            "cannot read this recording: something stands behind its end. It is damaged."
        )
    calls = np.concatenate(blocks) if blocks else np.empty(0, ROW)
    return _json.with_calls(_json.facts(b"".join(facts)), calls)


def too_large(what: str, needed: int) -> RecordingFileError:
    """The error for a file that would take more memory than is allowed."""
    return RecordingFileError(
        f"cannot read this recording: {what} may take {needed:,} bytes of memory, more than the "
        f"limit. If you trust the file, write load(path, limit_bytes={needed})."
    )


def _truncated(where: str) -> RecordingFileError:
    return RecordingFileError(
        f"cannot read this recording: the file ends {where}. It is truncated; save it anew."
    )


def _sizes(total: int, most: int) -> Iterator[int]:
    for start in range(0, total, most):
        yield min(most, total - start)


def _write_block(file: BinaryIO, raw: bytes) -> None:
    packed = zlib.compress(raw, 1)
    file.write(_BLOCK.pack(len(raw), len(packed), zlib.crc32(raw)) + packed)


def _read_block(file: BinaryIO, size: int) -> bytes:
    """The next block, which has to be of `size` bytes when it is unpacked."""
    head = file.read(_BLOCK.size)
    if len(head) < _BLOCK.size:
        raise _truncated("before its last block")
    raw_bytes, packed_bytes, checksum = _BLOCK.unpack(head)
    if raw_bytes != size or packed_bytes > size + size // 100 + 1_000:
        raise _damaged(f"a block says that it has {raw_bytes:,} bytes, packed {packed_bytes:,}")
    packed = file.read(packed_bytes)
    if len(packed) < packed_bytes:
        raise _truncated("within a block")
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(packed, size + 1)  # not more, whatever it would become
    except zlib.error as error:
        raise _damaged(f"a block cannot be unpacked ({error})") from None
    if len(raw) != size or not unpacking.eof or unpacking.unused_data:
        raise _damaged("a block does not have the length that it says")
    if zlib.crc32(raw) != checksum:
        raise _damaged("the checksum of a block is wrong")
    return raw


def _damaged(why: str) -> RecordingFileError:
    return RecordingFileError(f"cannot read this recording: {why}. It is damaged.")


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
    for name in ("start_ns", "crossing"):  # these wrap around, as the differences did
        rows[name] = np.cumsum(rows[name], dtype=ROW[name])
    rows["end_ns"] += rows["start_ns"]
    return rows
