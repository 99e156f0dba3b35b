"""Write host calls as Arrow and Parquet files, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ...recording import Named, Recording, call_table

_ROWS = 1 << 16  # of a record batch


def write_arrow(recording: Recording, file: BinaryIO) -> None:
    """Write the columns of `Recording.to_pandas` as an Arrow file (Feather)."""
    arrow = _pyarrow("arrow")
    table = call_table(recording)
    with arrow.ipc.new_file(file, _schema(arrow, table)) as writer:
        for batch in _batches(arrow, table, len(recording)):
            writer.write_batch(batch)


def write_parquet(recording: Recording, file: BinaryIO) -> None:
    """Write the columns of `Recording.to_pandas` as a Parquet file."""
    arrow = _pyarrow("parquet")
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    table = call_table(recording)
    with parquet.ParquetWriter(file, _schema(arrow, table)) as writer:
        for batch in _batches(arrow, table, len(recording)):
            writer.write_batch(batch)


def _pyarrow(suffix: str) -> Any:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.ipc  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a .{suffix} file needs pyarrow, which is not installed. Run `pip install pyarrow`, "
            "or save a .csv file.",
            name="pyarrow",
        ) from error
    return pyarrow


def _words(arrow: Any, column: Named) -> Any:
    numbers = column.words and all(isinstance(word, int) for word in column.words)
    return arrow.array(column.words, arrow.int64() if numbers else arrow.string())


def _arrays(arrow: Any, table: dict[str, Any], rows: slice) -> list[Any]:
    found = []
    for column in table.values():
        if isinstance(column, Named):
            codes = arrow.array(column.codes[rows], mask=column.codes[rows] < 0)
            found.append(arrow.DictionaryArray.from_arrays(codes, _words(arrow, column)))
        else:
            found.append(arrow.array(np.ascontiguousarray(column[rows])))
    return found


def _schema(arrow: Any, table: dict[str, Any]) -> Any:
    none = _arrays(arrow, table, slice(0))
    return arrow.schema([(name, array.type) for name, array in zip(table, none, strict=True)])


def _batches(arrow: Any, table: dict[str, Any], count: int) -> Iterator[Any]:
    for start in range(0, count, _ROWS):
        arrays = _arrays(arrow, table, slice(start, start + _ROWS))
        yield arrow.record_batch(arrays, names=list(table))
