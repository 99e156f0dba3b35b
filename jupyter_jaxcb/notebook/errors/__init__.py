"""Show the user's own exception for a failed host function, once, and name its cell if late."""

from ._error_display import SIGNAL_HANDLERS, ErrorDisplay
