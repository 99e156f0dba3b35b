"""What happens when a cell begins and when it ends.

`_session` is the extension while it is loaded; `_cell_barrier` waits for a cell's host calls,
`_stop_button` handles SIGINT, `_output_routing` sends late output to the cell it belongs to.
"""

from ._session import Session as Session
from ._stacks import stacks as stacks
