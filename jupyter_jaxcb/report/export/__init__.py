"""Write recordings to files for readers and other tools: pages, reports, tables, timelines.

`_export` maps file name suffixes to formats; each format of more than a few lines has a module.
"""

from ._export import OF_SITES, export
from ._page import NOTHING
