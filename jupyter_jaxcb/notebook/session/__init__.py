"""The loaded extension: what it does when a cell begins and ends.

`_session` ties everything together; `_cell_barrier` waits for a cell's host calls, `_stop_button`
handles SIGINT, and `_output_routing` sends late output to the cell it belongs to.
"""

from ._session import Session
from ._stacks import stacks
