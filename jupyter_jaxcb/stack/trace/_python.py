"""Which Python this is: some of what CPython does is not promised, and is used only where tried.

On another version, host calls, their errors and recordings work without it; docs/limits.md says
what is lost.
"""

from __future__ import annotations

import sys

OLDEST, NEWEST = (3, 11), (3, 14)  # on which all tests ran

IS_TRIED = OLDEST <= sys.version_info[:2] <= NEWEST
