"""Render the profile of a recording: where its wall time went.

`_figures` has the numbers and names that all texts share, `_advice` what they mean, and `_views`
lays them out, before the call sites. The front end gets the same figures and sentences from
`frontend`.
"""

from ._advice import advice, queueable
from ._figures import KINDS, Figures, headline, notes
from ._views import profile_to_html, to_html, to_markdown, to_text
