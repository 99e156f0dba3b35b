"""Render recordings as text and HTML.

`_text` and `_html` lay out the rows of `summary`, and `_diagram` draws what vmap did. `_words`
phrases shapes, counts and times, `_phrases` holds the words that the front end uses too.
"""

from ._cost import cost_to_text as cost_to_text
from ._headline import headline as headline
from ._html import sites_to_html as sites_to_html
from ._html import to_html as to_html
from ._matrix import matrix_to_html as matrix_to_html
from ._matrix import matrix_to_text as matrix_to_text
from ._text import outcome_to_text as outcome_to_text
from ._text import sites_to_text as sites_to_text
from ._text import to_text as to_text
from ._words import level_words as level_words
from ._words import shorten as shorten
from ._words import status_words as status_words
from ._words import time_words as time_words
from ._workers import by_other_threads as by_other_threads
