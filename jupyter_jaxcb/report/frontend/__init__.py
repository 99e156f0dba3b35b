"""Build the data that the notebook front end reads.

`_site_view` is what all of it says about a call site. `_mime` builds the MIME bundle of a finished
recording, with `_columns` for its calls and `_profile` for its profile. `_progress` builds the
messages of a running cell. `_documents` lists all of this JSON, key by key.
"""

from ...recording import BUNDLES, Recording
from ._columns import CallColumns, call_columns
from ._documents import (
    CallbackView,
    HangView,
    RunSiteView,
    RunsView,
    SiteKeyView,
    SnapshotView,
    SpotView,
    ValueView,
)
from ._mime import MIME_TYPE, STARTED, started_words, to_message, to_mimebundle, to_page, to_sites
from ._progress import LONG_NS, Progress
from ._site_view import (
    SCHEMA,
    Located,
    Place,
    SiteProgress,
    SiteView,
    Where,
    finished,
    unfinished,
)

BUNDLES[Recording] = to_mimebundle
