"""The loaded extension: what it does when a cell begins and ends.

`_session` ties everything together; `_cell_barrier` waits for a cell's host calls, `_stop_button`
handles SIGINT, `_hangs` tells why no call returns, `_output_routing` sends late output to the cell
it belongs to, `_code_clock` measures how long code runs, and `_timed_code` finds its lines under
other magics.
"""

from ._session import Session
from ._stacks import stacks
from ._timed_code import cell_frame, lines_as_typed
