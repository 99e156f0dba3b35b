"""The primitives behind `jupyter_jaxcb.host_callback`.

`_tap` passes its operands on, `_call` returns a result; both use `_effect` and `_barrier`.
"""

from ._barrier import CallbackException, barrier, barrier_at_exit
from ._call import bind_tap_call
from ._flags import flags
from ._tap import bind_tap
