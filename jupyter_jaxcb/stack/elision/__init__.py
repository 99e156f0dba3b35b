"""."""

from ._evidence import HostCallIndex as HostCallIndex
from ._programs import all_counted as all_counted
