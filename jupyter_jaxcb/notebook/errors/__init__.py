"""."""

from ._error_display import SIGNAL_HANDLERS as SIGNAL_HANDLERS
from ._error_display import ErrorDisplay as ErrorDisplay
