"""What happened: facts, the recorder that hears them, the recording that keeps them."""

from ._facts import ELIDED as ELIDED
from ._facts import Aval as Aval
from ._facts import Compilation as Compilation
from ._facts import Fate as Fate
from ._facts import Frame as Frame
from ._facts import HostCall as HostCall
from ._facts import LoweredSite as LoweredSite
from ._facts import NotFinite as NotFinite
from ._facts import Outcome as Outcome
from ._facts import Preview as Preview
from ._facts import Program as Program
from ._facts import Running as Running
from ._facts import Site as Site
from ._facts import VmapLevel as VmapLevel
from ._json import SCHEMA as SCHEMA
from ._mark import Heard as Heard
from ._mark import Mark as Mark
from ._matrix import Matrix as Matrix
from ._recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from ._recorder import Recorder as Recorder
from ._recorder import activate as activate
from ._recorder import active as active
from ._recording import Recording as Recording
from ._turns import Turns as Turns
