"""Migrate from ``jax.experimental.host_callback``: list the uses in files, rewrite the imports.

Uses only the standard library, and does not run the file.
"""

from ._command import add_arguments, perform
from ._files import MigrationError, Source, read
from ._run import migrate_files
from ._uses import Use
from ._words import report
