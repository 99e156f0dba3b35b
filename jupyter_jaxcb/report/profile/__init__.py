"""Render the profile of a recording: where its wall time went.

`_figures` collects the numbers that all texts share, `_kinds` names and draws each kind, `_advice`
says what they mean, and `_text`, `_html` and `_markdown` lay them out, before the call sites. The
front end gets the same figures and sentences from `frontend`.
"""

from ._advice import advice
from ._figures import Figures, headline, notes
from ._html import profile_to_html, to_html
from ._kinds import KINDS
from ._markdown import to_markdown
from ._queue import queueable
from ._text import to_text
