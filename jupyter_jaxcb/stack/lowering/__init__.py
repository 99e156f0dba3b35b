"""Lower a bind to a custom call in an XLA program.

Read `_host_call` first, then `_custom_call`, which also has what capabilities register instead.
`_multi_device` makes one call on behalf of several devices.
"""

from ._custom_call import DIRECT as DIRECT
from ._custom_call import HOST_MEMORY as HOST_MEMORY
from ._custom_call import lowers as lowers
from ._custom_call import other_way as other_way
from ._custom_call import set_token as set_token
from ._custom_call import zeros as zeros
from ._facts import eager_fact as eager_fact
from ._facts import lowering as lowering
from ._facts import note_call as note_call
from ._facts import note_lowered as note_lowered
from ._host_call import SHARD_NUMBER as SHARD_NUMBER
from ._host_call import lower_host_call as lower_host_call
from ._host_call import refuse as refuse
from ._multi_device import lower_once as lower_once
from ._sub_byte import bits as bits
