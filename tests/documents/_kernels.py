"""A plugin for pytest: kernels of nbval use sockets that are files, and all outputs are compared.

Otherwise two kernels that start at the same time may choose the same port, and one of them ends.
Cells are tagged for those who compare without ``sanitize.cfg``, which removes what differs.
"""

import itertools
import tempfile
from pathlib import Path

import nbval.kernel
import nbval.plugin
from jupyter_client import KernelManager

_folder = tempfile.TemporaryDirectory(prefix="kernels")  # removed when the process ends
_numbers = itertools.count()


def _manager(**options):
    file = Path(_folder.name) / f"{next(_numbers)}.json"
    return KernelManager(transport="ipc", connection_file=str(file), **options)


nbval.kernel.KernelManager = _manager
del nbval.plugin.metadata_tags["nbval-ignore-output"]
