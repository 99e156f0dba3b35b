"""Render recordings as text, HTML and Markdown.

`_text`, `_html` and `_markdown` lay out the rows of `summary`. `_variant` words shapes and draws
what vmap did, `_words` phrases counts and times, `_phrases` holds the words that the front end uses
too.
"""

from ._cost import cost_to_text
from ._headline import Part, headline
from ._html import code, sites_to_html, to_html
from ._markdown import code_span, plain_words, table, to_markdown
from ._matrix import (
    NO_CALLBACKS,
    matrix_missing,
    matrix_refusals,
    matrix_refused,
    matrix_rows,
    matrix_to_text,
)
from ._other_threads import by_other_threads
from ._phrases import MEANINGS, SIGNS, TONES, WORDS
from ._text import outcome_to_text, sites_to_text, to_text
from ._time import host_time, other_time
from ._variant import VariantView, level_words, variant_views
from ._words import (
    aligned,
    count_words,
    full_words,
    loop_advice,
    sample_words,
    shorten,
    status_words,
    time_words,
)
