"""Ctrl-C and the stop button: what is in flight, and which calls are refused or ended.

Read `_interrupts` first. `_failure` turns the exceptions of host functions into errors that XLA can
carry, and lets an interrupt end the program.
"""

from ._failure import report_failure
from ._in_flight import InFlight, finish_before_executors_end
from ._interrupts import (
    NOT_CALLED,
    Stuck,
    elements_left,
    end_calls,
    interrupt,
    interrupt_at_exit,
    interrupt_main,
    is_call_of_jax,
    on_thread_of_xla,
    refusal,
    refuse_call,
    release,
)
