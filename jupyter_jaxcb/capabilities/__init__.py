"""What host calls can do besides: each folder is one capability, which nothing below knows.

A capability registers itself in the tables of `stack` when it is imported: its options, how its
crossings are built, how its binds are lowered and what the recording says of its calls.
"""

from .executors import ExecutorError, WorkerLostError
from .host_objects import HostObject, HostObjectInfo, host_object
from .lint import (
    FinishedElementsWarning,
    ImpureFunctionWarning,
    JaxInHostFunctionWarning,
    NotVaryingWarning,
    WorkerStateWarning,
    advice_for_jax_inside,
)
from .queued import QueueFullWarning, Unfinished, drop_queued, queue, set_queue_limit
