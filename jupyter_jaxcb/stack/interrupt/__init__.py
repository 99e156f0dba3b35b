"""Ctrl-C and the stop button: what is in flight, and which calls are refused or ended.

Read `_interrupts` first. `_failure` turns the exceptions of host functions into errors that XLA can
carry, and lets an interrupt end the program.
"""

from ._ending import end_call_in as end_call_in
from ._failure import report_failure as report_failure
from ._in_flight import InFlight as InFlight
from ._in_flight import finish_before_executors_end as finish_before_executors_end
from ._interrupts import NOT_CALLED as NOT_CALLED
from ._interrupts import elements_left as elements_left
from ._interrupts import interrupt as interrupt
from ._interrupts import interrupt_at_exit as interrupt_at_exit
from ._interrupts import interrupt_main as interrupt_main
from ._interrupts import is_interrupted as is_interrupted
from ._interrupts import on_thread_of_xla as on_thread_of_xla
from ._interrupts import refusal as refusal
from ._interrupts import refuse_call as refuse_call
from ._interrupts import release as release
