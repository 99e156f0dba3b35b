"""Render the profile of a recording: where its wall time went.

`_figures` collects the numbers that all texts share, `_kinds` names and draws each kind, `_advice`
says what they mean, `_text` and `_html` lay them out, and `_whole` puts them before the call sites.
The front end gets the same figures and sentences from `frontend`.
"""

from ._advice import advice as advice
from ._figures import Figures as Figures
from ._figures import headline as headline
from ._figures import notes as notes
from ._kinds import KINDS as KINDS
from ._whole import to_html as to_html
from ._whole import to_text as to_text
