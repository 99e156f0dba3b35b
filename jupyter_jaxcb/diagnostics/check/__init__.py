"""``check()``: test whether a host function keeps the contract of its flavor.

`_check` has the table of checks and runs them: each is a function of a `Subject`, the host function
with the arguments of one call, and yields findings, or texts that say what was not checked. Most
compute a result in two ways, by `Subject.run`, and compare them by `difference` (`_subject`).
"""

from ._check import check
