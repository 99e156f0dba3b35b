"""Programs that do not go on: what they wait for, and how to leave them.

`_diagnosis` says what the program waits for, from `_place`, where each thread is, and `_cpu`, which
threads compute. `_signals` hears Ctrl-C while the main thread is stuck, and `_ctrl_c` does what
Ctrl-C should do then, in a script. `_watchdog` notices a hang by itself, and `_printing` prints it.
Notebooks have their own stop button.
"""

from ._ctrl_c import (
    INTERRUPTED,
    CtrlC,
    explain_and_end,
    leave_at_next_interrupt,
    way_out,
)
from ._diagnosis import Hang, HangKind, stacks_of_threads
from ._printing import watchdog, watchdog_and_timer
from ._signals import SignalThread
from ._watchdog import Watchdog
