"""Write recordings to files for readers and other tools: HTML, CSV, Arrow, Parquet, Perfetto.

`_export` maps file name suffixes to formats; each format has a module.
"""

from ._export import OF_CALLS, export
from ._page import NOTHING
