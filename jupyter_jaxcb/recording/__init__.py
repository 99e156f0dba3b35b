"""Recordings of host calls and the recorder that makes them, without depending on JAX.

Read `_facts` first: it has a class for each kind of fact. `_recorded_facts` puts them together,
and `_recording` adds text and files (`files`). `recorder` collects facts while programs run; the
``with`` block around it is in `diagnostics`.
"""

from ._check import Check as Check
from ._check import Checks as Checks
from ._check import Finding as Finding
from ._facts import COMPILED_BEFORE as COMPILED_BEFORE
from ._facts import COMPILED_EARLIER as COMPILED_EARLIER
from ._facts import ELIDED as ELIDED
from ._facts import OBSERVED as OBSERVED
from ._facts import UNKNOWN_LINE as UNKNOWN_LINE
from ._facts import Aval as Aval
from ._facts import Compilation as Compilation
from ._facts import Frame as Frame
from ._facts import HostCall as HostCall
from ._facts import JaxUse as JaxUse
from ._facts import LoweredSite as LoweredSite
from ._facts import MaskUse as MaskUse
from ._facts import Note as Note
from ._facts import NoteKind as NoteKind
from ._facts import NotFinite as NotFinite
from ._facts import NotKept as NotKept
from ._facts import Outcome as Outcome
from ._facts import Process as Process
from ._facts import Program as Program
from ._facts import QueueUse as QueueUse
from ._facts import Reason as Reason
from ._facts import Running as Running
from ._facts import SampleValues as SampleValues
from ._facts import Site as Site
from ._facts import Status as Status
from ._facts import Worker as Worker
from ._matrix import Matrix as Matrix
from ._merged import merged as merged
from ._profile import OTHER as OTHER
from ._profile import PYTHON_OF_JAX as PYTHON_OF_JAX
from ._profile import Lane as Lane
from ._profile import Part as Part
from ._profile import PartKind as PartKind
from ._profile import Profile as Profile
from ._profile import Unknown as Unknown
from ._recording import Recording as Recording
from ._recording import load as load
from ._str import BUNDLES as BUNDLES
from ._str import TEXTS as TEXTS
from ._str import WIDGETS as WIDGETS
from ._table import FACTS as FACTS
from ._table import Named as Named
from ._table import call_table as call_table
from ._vmap import VMAP_METHODS as VMAP_METHODS
from ._vmap import WHOLE_BATCH as WHOLE_BATCH
from ._vmap import AxisKind as AxisKind
from ._vmap import VmapLevel as VmapLevel
from ._vmap import VmapMethod as VmapMethod
from ._vmap import calls_each_time as calls_each_time
from ._vmap import method_named as method_named
from .files import FORMATS as FORMATS
from .files import SCHEMA as SCHEMA
from .files import RecordingFileError as RecordingFileError
from .files import check_path as check_path
from .files import read_binary as read_binary
from .files import write_binary as write_binary
from .recorder import COMPILED_THREAD as COMPILED_THREAD
from .recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from .recorder import QUEUE_THREAD as QUEUE_THREAD
from .recorder import Mark as Mark
from .recorder import QueuedRecorder as QueuedRecorder
from .recorder import Recorder as Recorder
from .recorder import Snapshot as Snapshot
from .recorder import WorkerRows as WorkerRows
from .recorder import YieldPoints as YieldPoints
from .recorder import activate as activate
from .recorder import active as active
from .recorder import add_native_log as add_native_log
