"""Displays: host traces, the live view, the side panel, badges.

`_host_trace` displays a recording, `_live` a running cell; `_panel` and `_panel_link` send data to
JupyterLab's side panel and badges.
"""

from ._host_trace import HostTrace as HostTrace
from ._host_trace import matrix_bundle as matrix_bundle
from ._host_trace import widget_of as widget_of
from ._live import LiveView as LiveView
from ._origins import Origins as Origins
from ._origins import blank_lines as blank_lines
from ._panel import snapshot as snapshot
from ._panel_link import Link as Link
from ._sites import Sites as Sites
