"""What runs in a worker of an executor: some elements of a host function, one after the other.

A package beside the other: a worker process imports it, and neither that nor JAX.
"""

from ._answers import Checked as Checked
from ._answers import check_ended as check_ended
from ._answers import number_of as number_of
from ._answers import opened as opened
from ._ran import ElementError as ElementError
from ._ran import Ran as Ran
from ._ran import Who as Who
from ._run import SLOT as SLOT
from ._run import run_elements as run_elements
from ._run import running as running
from ._shared import remove_own as remove_own
from ._shared import shared_if_large as shared_if_large
from ._task import Chunk as Chunk
from ._task import Column as Column
from ._task import Task as Task
