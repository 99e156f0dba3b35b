"""Recordings of host calls and the recorder that makes them, without depending on JAX.

Read `_facts` first: it has a class for each kind of fact. `_recorded_facts` puts them together,
and `_recording` adds text and files (`files`). `recorder` collects facts while programs run; the
``with`` block around it is in `diagnostics`.
"""

from ._check import Check, Checks, Finding
from ._columns import ROW
from ._facts import (
    COMPILED_BEFORE,
    COMPILED_EARLIER,
    EXPECTED,
    LARGEST_CHECKED,
    OBSERVED,
    UNKNOWN_LINE,
    ArrayValues,
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
    Process,
    Program,
    QueueUse,
    Reason,
    Running,
    SampleValues,
    Site,
    Status,
    Worker,
)
from ._merged import merged
from ._profile import OTHER, PYTHON_OF_JAX, Lane, Part, PartKind, Profile, Unknown
from ._recording import Matrix, Recording, load, load_calls
from ._rule import Rule, decide
from ._shown import Html, between, element, html, on_one_line, spreadsheet_cell, visible
from ._str import BUNDLES, PAGES, TEXTS, WIDGETS
from ._table import FACTS, Named, call_table
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
    read_binary,
    write_binary,
)
from .recorder import (
    COMPILED_THREAD,
    DEFAULT_CAPACITY,
    HAS_GIL,
    NOT_PLAIN,
    QUEUE_THREAD,
    Mark,
    PlainTimes,
    Recorder,
    Snapshot,
    WorkerRows,
    YieldPoints,
    activate,
    active,
    add_backlog,
    add_native_log,
    names_worker,
    record_call,
    record_elements,
    value_words,
)
