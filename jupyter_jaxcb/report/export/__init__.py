"""."""

from ._export import export as export
