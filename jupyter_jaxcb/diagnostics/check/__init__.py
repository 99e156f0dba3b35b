"""``check()``: test whether a host function keeps the contract of its flavor.

`_check` lists the checks in order; each yields findings. A `Subject` is the host function with the
arguments of one call, and `Elements` are further values made up from them.
"""

from ._check import check
