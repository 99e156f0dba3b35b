"""."""

from ._gather import gather as gather
