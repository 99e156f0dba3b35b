"""The code that runs in a worker of an executor: it calls a host function for a chunk of elements.

A package separate from `jupyter_jaxcb`: a worker process imports this one, and neither
`jupyter_jaxcb` nor JAX.
"""

from ._call_info import CallFacts as CallFacts
from ._call_info import CallInfo as CallInfo
from ._call_info import Numbers as Numbers
from ._call_info import call_info as call_info
from ._call_info import reads_call_in as reads_call_in
from ._outcome import ChunkOutcome as ChunkOutcome
from ._outcome import ElementError as ElementError
from ._outcome import Worker as Worker
from ._results import Checked as Checked
from ._results import check_ended as check_ended
from ._results import number_of as number_of
from ._results import unpickled as unpickled
from ._run import SLOT as SLOT
from ._run import run_elements as run_elements
from ._run import running as running
from ._shared import remove_own as remove_own
from ._shared import shared_if_large as shared_if_large
from ._task import Chunk as Chunk
from ._task import Column as Column
from ._task import Task as Task
