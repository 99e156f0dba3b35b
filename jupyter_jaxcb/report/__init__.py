"""Recording in, value out: pure functions."""

from ._cost import cost_to_text as cost_to_text
from ._html import to_html as to_html
from ._matrix import matrix_to_html as matrix_to_html
from ._matrix import matrix_to_text as matrix_to_text
from ._mime import MIME_TYPE as MIME_TYPE
from ._mime import to_mimebundle as to_mimebundle
from ._summary import SiteSummary as SiteSummary
from ._summary import summarize as summarize
from ._text import to_text as to_text
from ._words import call_words as call_words
from ._words import shorten as shorten
from ._words import time_words as time_words
