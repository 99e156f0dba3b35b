"""A plugin for pytest: kernels of nbval use sockets that are files.

Otherwise two kernels that start at the same time may choose the same port, and one of them ends.
"""

import itertools
import tempfile
from pathlib import Path

import nbval.kernel
from jupyter_client import KernelManager

_folder = tempfile.TemporaryDirectory(prefix="kernels")  # removed when the process ends
_numbers = itertools.count()


def _manager(**options):
    file = Path(_folder.name) / f"{next(_numbers)}.json"
    return KernelManager(transport="ipc", connection_file=str(file), **options)


nbval.kernel.KernelManager = _manager
