"""Migrate from ``jax.experimental.host_callback``: list the uses in a file, rewrite its imports.

Uses only the standard library, and does not run the file.
"""

from ._files import MigrationError as MigrationError
from ._files import Source as Source
from ._files import read as read
from ._uses import Use as Use
from ._words import report as report
