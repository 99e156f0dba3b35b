"""Write recordings to files for other tools: CSV, Arrow, Parquet, Perfetto.

`_export` maps file name suffixes to formats; each format has a module.
"""

from ._export import export as export
