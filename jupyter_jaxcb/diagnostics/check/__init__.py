"""``check()``: test whether a host function keeps the contract of its flavor.

`_check` runs the checks on a `_subject`; `_vmap` and `_derivative` are the two large ones.
`_wrapped` finds the callbacks that a function calls.
"""

from ._check import check
