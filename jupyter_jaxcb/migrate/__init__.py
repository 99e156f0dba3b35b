"""From ``jax.experimental.host_callback`` to ours: what a file uses, and its import rewritten.

Standard library only: nothing of what is looked at runs.
"""

from ._files import MigrationError as MigrationError
from ._files import Source as Source
from ._files import read as read
from ._uses import Use as Use
from ._words import report as report
