"""Migrate from ``jax.experimental.host_callback``: list the uses in a file, rewrite its imports.

Uses only the standard library, and does not run the file.
"""

from ._files import MigrationError, Source, read
from ._uses import Use
from ._words import report
