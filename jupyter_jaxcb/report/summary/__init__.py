"""The facts that every report shows, as values.

Read `_summary` first: it builds one `SiteSummary` for each table row from `_counts` and `_rows`.
`_reasons` has the texts of all reasons, advice and notes, `_capabilities` what a capability adds.
"""

from ._counts import Stopped
from ._mask import Mask, could_have_mask
from ._numbers import call_words, counted
from ._out_of_order import out_of_order
from ._reasons import advice_words, causes_of, note_words, reason_words
from ._retraces import Retraces, retraces
from ._rows import Rows, path
from ._summary import STOPPED_BY_YOU, Shapes, SiteSummary, folded, is_stop, summarize
