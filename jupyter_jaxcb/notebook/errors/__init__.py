"""What a failing cell shows: the user's own exception, once, and late ones with their cell."""

from ._error_display import SIGNAL_HANDLERS as SIGNAL_HANDLERS
from ._error_display import ErrorDisplay as ErrorDisplay
