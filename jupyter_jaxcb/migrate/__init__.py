"""Migrate from ``jax.experimental.host_callback``: list the uses in files, rewrite the imports.

Uses only the standard library, and does not run the file.
"""

from ._files import MigrationError, Source, read
from ._run import add_arguments, migrate_files, perform
from ._uses import Use
from ._words import report
