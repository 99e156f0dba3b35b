"""Recordings of host calls and the recorder that makes them, without depending on JAX.

Read `_facts` first: it has a class for each kind of fact. `_recording` puts them together, and
`files` saves them. `recorder` collects facts while programs run; the ``with`` block around it is in
`diagnostics`.
"""

from ._check import Check, Checks, Finding
from ._facts import (
    COMPILED_BEFORE,
    COMPILED_EARLIER,
    EXPECTED,
    LARGEST_CHECKED,
    OBSERVED,
    ROW,
    UNKNOWN_LINE,
    Aval,
    Compilation,
    Frame,
    HostCall,
    JaxUse,
    LoweredSite,
    MaskUse,
    Note,
    NoteKind,
    NotFinite,
    NotFiniteCall,
    NotKept,
    ObjectUse,
    Outcome,
    Program,
    QueueUse,
    Reason,
    Running,
    SampleValues,
    Site,
    Status,
    Worker,
    cell_number,
    numbered,
    numbers_of,
    set_cells,
    where_now,
)
from ._profile import (
    BACKGROUND,
    OTHER,
    PYTHON_OF_JAX,
    Lane,
    Part,
    PartKind,
    Profile,
    Unknown,
    kind_of,
)
from ._recording import Matrix, Recording, load, unnumbered
from ._shown import (
    BUNDLES,
    PAGES,
    TEXTS,
    WIDGETS,
    Html,
    between,
    compact_css,
    element,
    html,
    on_one_line,
    spreadsheet_cell,
    visible,
)
from ._table import FACTS, call_table
from ._vmap import (
    VMAP_METHODS,
    WHOLE_BATCH,
    AxisKind,
    VmapLevel,
    VmapMethod,
    calls_each_time,
    method_named,
)
from .files import (
    FORMATS,
    LIMIT_BYTES,
    SCHEMA,
    RecordingFileError,
    check_folder,
    check_path,
)
from .recorder import (
    COMPILED_THREAD,
    DEFAULT_CAPACITY,
    NOT_PLAIN,
    QUEUE_THREAD,
    Mark,
    PlainTimes,
    Recorder,
    YieldPoints,
    activate,
    active,
    add_backlog,
    add_native_log,
    record_call,
    record_elements,
    value_words,
)
