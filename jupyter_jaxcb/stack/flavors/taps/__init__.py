"""The primitives behind `jupyter_jaxcb.host_callback`.

`_tap` passes its operands on, `_call` returns a result; both use `_effect` and `_barrier`.
"""

from ._barrier import CallbackException as CallbackException
from ._barrier import barrier as barrier
from ._barrier import barrier_at_exit as barrier_at_exit
from ._call import bind_tap_call as bind_tap_call
from ._flags import flags as flags
from ._tap import bind_tap as bind_tap
