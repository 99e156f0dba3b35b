"""Recordings as files for other tools: CSV, Parquet, Perfetto.

`_export` holds the table of suffixes; each format is one module.
"""

from ._export import export as export
