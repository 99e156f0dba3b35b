"""Build the data that the notebook front end reads.

`_site_view` is what all of it says about a call site. `_mime` builds the MIME bundle of a finished
recording, with `_columns` for its calls and `_profile` for its profile. `_progress` builds the
messages of a running cell.
"""

from ...recording import BUNDLES, Recording
from ._columns import CallColumns as CallColumns
from ._columns import call_columns as call_columns
from ._mime import MIME_TYPE as MIME_TYPE
from ._mime import to_message as to_message
from ._mime import to_mimebundle as to_mimebundle
from ._mime import to_page as to_page
from ._progress import LONG_NS as LONG_NS
from ._progress import Progress as Progress
from ._site_view import SCHEMA as SCHEMA
from ._site_view import Place as Place
from ._site_view import SiteProgress as SiteProgress
from ._site_view import SiteView as SiteView
from ._site_view import finished as finished
from ._site_view import unfinished as unfinished

BUNDLES[Recording] = to_mimebundle
