"""Facts about a recording that every report shows, as values."""

from ._out_of_order import out_of_order as out_of_order
from ._rows import Rows as Rows
from ._rows import path as path
from ._summary import Shapes as Shapes
from ._summary import SiteSummary as SiteSummary
from ._summary import summarize as summarize
