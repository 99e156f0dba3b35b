"""Reports: pure functions of a recording.

`summary` collects and words the facts of each table row, `text` lays them out as plain text, HTML
and Markdown, `profile` does so with a profile, `outputs` renders what is not a
recording, `frontend` builds what the notebook front end reads, and `export` writes files.
"""

from .export import NOTHING, OF_SITES, export
from .frontend import (
    LONG_NS,
    MIME_TYPE,
    SCHEMA,
    STARTED,
    CallbackView,
    CallColumns,
    HangView,
    Located,
    Place,
    Progress,
    RunSiteView,
    RunsView,
    SiteKeyView,
    SiteProgress,
    SiteView,
    SnapshotView,
    SpotView,
    ValueView,
    Where,
    call_columns,
    finished,
    started_words,
    to_message,
    to_mimebundle,
    unfinished,
)
from .outputs import (
    OUTPUT_TYPE,
    Output,
    Spot,
    check_output,
    matrix_output,
    output,
    place,
    status,
    table,
    term,
    toned,
)
from .profile import to_html, to_text
from .summary import (
    Rows,
    SiteSummary,
    advice_words,
    aligned,
    call_words,
    causes_of,
    folded,
    note_words,
    percentiles_95,
    reason_words,
    shorten,
    summarize,
    time_words,
)
from .text import NO_CALLBACKS, code, cost_to_text, headline, matrix_to_text, outcome_to_text
