"""Displays: host traces, the live view, the side panel, badges.

`_host_trace` displays a recording, `_live` a running cell, `_watched` the values of one, and
`_output` matrices, checks and tables; `_panel`, `_line_values` and `_panel_link` send data to
JupyterLab's side panel and badges. `_history` has the last runs of each cell.
"""

from ._history import History
from ._host_trace import HostTrace, widget_of
from ._line_values import LineValues
from ._live import LiveView
from ._origins import Origins, blank_lines
from ._output import check_bundle, matrix_bundle, output_bundle, watch_bundle
from ._panel import snapshot
from ._panel_link import Link
from ._sites import Sites
from ._watched import WatchedView
