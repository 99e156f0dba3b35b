"""The loaded extension: what it does when a cell begins and ends.

`_session` ties everything together; `_cell_barrier` waits for a cell's host calls, `_stop_button`
handles SIGINT, `_output_routing` sends late output to the cell it belongs to, `_timed_code`
finds the lines of code under other magics, and `_code_clock` measures how long code runs.
"""

from ._session import Session
from ._stacks import stacks
from ._timed_code import cell_frame, lines_as_typed
