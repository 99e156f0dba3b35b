"""Lay out recordings as text, HTML and Markdown; `summary` has the words."""

from ._cost import cost_to_text
from ._headline import Part, View, headline, not_recorded, view
from ._html import code, to_html
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
from ._text import outcome_to_text, to_text
from ._time import time_split
