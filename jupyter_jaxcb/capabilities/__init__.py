"""What host calls can do besides: each folder is one capability, which nothing below knows.

A capability registers itself in the tables of `stack` when it is imported: its options, how its
crossings are built, how its binds are lowered and what the recording says of its calls.
"""

from .executors import ExecutorError as ExecutorError
from .executors import WorkerLostError as WorkerLostError
from .lint import ImpureFunctionWarning as ImpureFunctionWarning
from .lint import JaxInHostFunctionWarning as JaxInHostFunctionWarning
from .lint import advice_for_jax_inside as advice_for_jax_inside
from .queued import QueueFullWarning as QueueFullWarning
from .queued import Unfinished as Unfinished
from .queued import drop_queued as drop_queued
from .queued import queue as queue
from .queued import set_queue_limit as set_queue_limit
