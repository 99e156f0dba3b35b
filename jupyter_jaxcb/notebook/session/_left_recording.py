"""Keep the recording of a cell that hangs, for the session after the restart of its kernel.

The file is beside the kernel's connection file: in the user's runtime folder, if the front end does
not choose another. It is there only while a cell hangs, or after that until the next session of the
notebook ends.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...recording import Recording

_MOST = 8  # files, of all notebooks of a user


class LeftRecording:
    """The file for the recording of a notebook whose kernel has to be restarted.

    Args:
        shell: IPython's shell. Without a kernel nothing is kept.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._path = _path_of(shell)
        self._written = False

    def write(self, recording: Recording) -> bool:
        """Keep the recording of a cell that hangs; return whether there is a place for it.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None:
            return False
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(self._path.parent):
            return False
        self._path.touch(0o600)  # `save` keeps the permissions
        self._written = True
        recording.save(self._path)
        files = sorted(self._path.parent.glob("*.jaxcb"), key=lambda file: file.stat().st_mtime)
        for old in files[:-_MOST]:
            old.unlink(missing_ok=True)
        return True

    def discard(self) -> None:
        """Remove the file that this session has written: the cell has ended after all."""
        if self._path is not None and self._written:
            self._written = False
            self._path.unlink(missing_ok=True)

    def offer(self) -> None:
        """Print where the recording of the previous kernel is, if it hung."""
        path = self._path
        if path is None or not path.is_file() or not _is_private(path.parent):
            return
        print(
            f"The last kernel of this notebook hung: jaxcb.load({str(path)!r}) is its recording "
            "until then. The file is deleted when this kernel ends."
        )
        atexit.register(path.unlink, missing_ok=True)


def _path_of(shell: InteractiveShell) -> Path | None:
    """Return the path for the notebook of `shell`: the same after a restart of its kernel."""
    application: Any = getattr(getattr(shell, "kernel", None), "parent", None)
    connection = getattr(application, "abs_connection_file", None)
    if not connection:
        return None
    connection = os.path.abspath(connection)
    notebook = os.environ.get("JPY_SESSION_NAME") or connection  # Jupyter's server sets it
    name = hashlib.sha256(notebook.encode()).hexdigest()[:16]
    user = getattr(os, "getuid", int)()
    return Path(connection).parent / f"jupyter_jaxcb-{user}" / f"{name}.jaxcb"


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write there: connection files may be in a shared place."""
    status = os.stat(folder)
    is_own = status.st_uid == getattr(os, "getuid", int)()
    return is_own and (os.name == "nt" or not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
