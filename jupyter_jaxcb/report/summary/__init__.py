"""The facts that every report shows, as values.

Read `_summary` first: it builds one `SiteSummary` for each table row from `_counts` and `_rows`.
`_site` and `_variant` word it, `_reasons` has the texts of all reasons, advice and notes,
`_phrases` the words that the front end uses too, `_capabilities` what a capability adds.
"""

from ._counts import Stopped, percentiles_95
from ._mask import Mask, could_have_mask
from ._out_of_order import out_of_order
from ._phrases import AXES, INSTEAD_OF, MEANINGS, MUST_RETURN, OWN_AXES, SIGNS, TONES, WORDS
from ._queue import QUEUE_HINT, QUEUE_OPTION
from ._reasons import advice_words, causes_of, note_words, reason_words
from ._retraces import Retraces, retraces
from ._rows import Rows, path
from ._site import SiteSummary, is_costly, not_finite_words
from ._summary import STOPPED_BY_YOU, folded, is_late, is_stop, summarize
from ._variant import (
    AxisView,
    DiagramView,
    RowView,
    Shapes,
    VariantView,
    drawn,
    level_words,
    one_shape,
    variant_views,
)
from ._words import (
    MAX_SITES,
    SOURCE_WIDTH,
    aligned,
    byte_words,
    call_words,
    counted,
    few,
    full_words,
    left_out,
    shorten,
    time_words,
)
