"""The facts that every report shows, as values.

Read `_summary` first: it builds one `SiteSummary` for each table row from `_counts` and `_rows`.
`_reasons` has the texts of all reasons, advice and notes, `_capabilities` what a capability adds.
"""

from ._counts import Stopped as Stopped
from ._mask import Mask as Mask
from ._mask import could_have_mask as could_have_mask
from ._numbers import call_words as call_words
from ._numbers import counted as counted
from ._out_of_order import out_of_order as out_of_order
from ._reasons import advice_words as advice_words
from ._reasons import causes_of as causes_of
from ._reasons import note_words as note_words
from ._reasons import reason_words as reason_words
from ._retraces import Retraces as Retraces
from ._retraces import retraces as retraces
from ._rows import Rows as Rows
from ._rows import path as path
from ._summary import Shapes as Shapes
from ._summary import SiteSummary as SiteSummary
from ._summary import summarize as summarize
