"""Reports: pure functions of a recording.

`summary` collects the facts of each table row and the texts of its reasons, `text` renders plain
text and HTML, `profile` those of a profile, `frontend` builds what the notebook front end reads,
and `export` writes files.
"""

from .export import NOTHING as NOTHING
from .export import export as export
from .frontend import LONG_NS as LONG_NS
from .frontend import MIME_TYPE as MIME_TYPE
from .frontend import SCHEMA as SCHEMA
from .frontend import CallColumns as CallColumns
from .frontend import Place as Place
from .frontend import Progress as Progress
from .frontend import SiteProgress as SiteProgress
from .frontend import SiteView as SiteView
from .frontend import call_columns as call_columns
from .frontend import finished as finished
from .frontend import to_message as to_message
from .frontend import to_mimebundle as to_mimebundle
from .frontend import unfinished as unfinished
from .profile import to_html as to_html
from .profile import to_text as to_text
from .summary import Rows as Rows
from .summary import SiteSummary as SiteSummary
from .summary import advice_words as advice_words
from .summary import call_words as call_words
from .summary import causes_of as causes_of
from .summary import note_words as note_words
from .summary import reason_words as reason_words
from .summary import summarize as summarize
from .text import cost_to_text as cost_to_text
from .text import headline as headline
from .text import matrix_to_html as matrix_to_html
from .text import matrix_to_text as matrix_to_text
from .text import outcome_to_text as outcome_to_text
from .text import shorten as shorten
from .text import status_words as status_words
from .text import time_words as time_words
