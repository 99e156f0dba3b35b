"""Recordings as files for other tools: CSV, Parquet, Perfetto."""

from ._export import export as export
