"""The options of callbacks: one row each, and the pairs that are refused.

`_options` has the rows. What checks the value of an option, and with which others it cannot be
combined, is registered by the folder that the option belongs to (`check`, `refuse`), as is what
the option does to a callback: `_capability` has the rows.
"""

from ._capability import Decides, capability
from ._options import FLAVORS, Options, rows, value_word
from ._refused import (
    Refusal,
    check,
    check_result,
    checked,
    refusals,
    refuse,
    refuse_result,
    refused_results,
)
