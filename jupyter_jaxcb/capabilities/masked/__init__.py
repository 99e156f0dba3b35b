"""Masked calls: the host function is called only where a mask is true, see `Callback.where`.

The mask is the last operand of the bind, so `vmap` batches it like any other. `_selection` finds
the needed batch elements: a part of a schedule under looped vmaps, otherwise gathered ones.
`_crossing` makes the calls for them; buffer callbacks have their own crossing. `_mask` is the side
of JAX: it checks masks and selects results. `_rules` masks the user's derivative rules, and their
calls, with values for them to compute with where the mask is false.
"""

from . import _crossing  # registers itself
from ._mask import checked_mask, otherwise_of, select
from ._rules import MASK, with_stand_ins
