"""Masked calls: the host function is called only where a mask is true, see `Callback.where`.

The mask is the last operand of the bind, so `vmap` batches it like any other. `_selection` finds
the needed batch elements: a part of a schedule under looped vmaps, otherwise gathered ones
(`_gather`). `_crossing` makes the calls for them; buffer callbacks have their own crossing. `_mask`
is the side of JAX: it checks masks, and masks the callbacks inside a derivative rule. `_rules`
makes such rules of the user's, with values for them to compute with where the mask is false.
"""

from ._crossing import MakeCalls as MakeCalls
from ._crossing import masked_crossing as masked_crossing
from ._mask import checked_mask as checked_mask
from ._mask import mask_of_rule as mask_of_rule
from ._mask import otherwise_of as otherwise_of
from ._mask import select as select
from ._rules import MASK as MASK
from ._rules import with_stand_ins as with_stand_ins
from ._selection import count_needed as count_needed
