"""``check()``: does a host function keep what its registration promises?

`_check` runs the checks on a `_subject`; `_vmap` and `_derivative` are the two large ones.
"""

from ._check import check as check
