"""Build the data that the notebook front end reads.

`_mime` builds the MIME bundle of a finished recording, with `_columns` for its calls and `_profile`
for its profile. `_progress` builds the messages of a running cell.
"""

from ...recording import BUNDLES, Recording
from ._columns import CallColumns as CallColumns
from ._columns import call_columns as call_columns
from ._mime import MIME_TYPE as MIME_TYPE
from ._mime import Place as Place
from ._mime import to_message as to_message
from ._mime import to_mimebundle as to_mimebundle
from ._mime import to_page as to_page
from ._mime import variant_facts as variant_facts
from ._progress import LONG_NS as LONG_NS
from ._progress import Progress as Progress
from ._progress import SiteProgress as SiteProgress

BUNDLES[Recording] = to_mimebundle
