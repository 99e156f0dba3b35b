"""The code that runs in a worker of an executor: it calls a host function for a chunk of elements.

A package separate from `jupyter_jaxcb`: a worker process imports this one, and neither
`jupyter_jaxcb` nor JAX.
"""

from ._call_info import CallFacts as CallFacts
from ._call_info import CallInfo as CallInfo
from ._call_info import Numbers as Numbers
from ._call_info import call_info as call_info
from ._call_info import reads_call_in as reads_call_in
from ._chunk import Chunk as Chunk
from ._chunk import Task as Task
from ._chunk import Worker as Worker
from ._chunk import in_worker_thread as in_worker_thread
from ._chunk import received as received
from ._chunk import run_chunk as run_chunk
from ._chunk import start_worker as start_worker
from ._results import check_ended as check_ended
from ._results import restored as restored
