"""."""

from ._host_trace import HostTrace as HostTrace
from ._host_trace import matrix_bundle as matrix_bundle
from ._live import Live as Live
from ._origins import Origins as Origins
from ._origins import blank_lines as blank_lines
from ._panel import snapshot as snapshot
from ._panel_link import Link as Link
from ._sites import Sites as Sites
from ._widget import RecordingWidget as RecordingWidget
