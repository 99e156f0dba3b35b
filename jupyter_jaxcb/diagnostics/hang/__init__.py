"""Programs that do not go on: what they wait for, and how to leave them.

`_signals` hears Ctrl-C while the main thread is stuck, `_diagnosis` says what the program waits for
and `_ctrl_c` does what Ctrl-C should do then, in a script. Notebooks have their own stop button.
"""

from ._ctrl_c import CtrlC
from ._diagnosis import calls_left
from ._signals import SignalThread
