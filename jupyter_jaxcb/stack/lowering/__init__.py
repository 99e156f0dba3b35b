"""Lower a bind to a custom call in an XLA program.

Read `_host_call` first, then `_custom_call`, which also asks capabilities for another way.
`_multi_device` makes one call on behalf of several devices, `_partitioned` one on each.
"""

from ._custom_call import DIRECT, HOST_MEMORY, Lower, other_way, set_token, zeros
from ._facts import eager_fact, lowering, note_call, note_lowered
from ._host_call import SHARD_NUMBER, lower_host_call, refuse
from ._multi_device import lower_once
from ._partitioned import divided
from ._plain_call import forget_open_calls, lower_joined_call, lower_plain_call
from ._sub_byte import bits
