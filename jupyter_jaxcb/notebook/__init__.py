"""The IPython extension: magics, displays and hooks; imported only by ``%load_ext``."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from ..recording import Recording
from ..report import to_mimebundle
from ..stack import leave_loops_to_jax, stop_attaching_causes
from .display import widget_of
from .magics import (
    CheckMagics,
    JaxMagics,
    RecordMagics,
    WatchMagics,
)
from .session import Session

_sessions: dict[int, tuple[InteractiveShell, Session, list[Magics]]] = {}


def load(shell: InteractiveShell) -> None:
    """Register the magics and hooks with `shell`; loading it twice has no effect."""
    if id(shell) in _sessions:
        return
    session = Session(shell)
    registered: list[Magics] = [
        JaxMagics(session),
        RecordMagics(session),
        CheckMagics(shell),
        WatchMagics(session),
    ]
    for magics in registered:
        shell.register_magics(magics)
    session.open()
    _sessions[id(shell)] = (shell, session, registered)


def unload(shell: InteractiveShell) -> None:
    """Undo everything that `load` did; compiled programs still run."""
    loaded = _sessions.pop(id(shell), None)
    if loaded is None:
        return
    _, session, registered = loaded
    session.close()
    leave_loops_to_jax()
    stop_attaching_causes()
    for magics in registered:
        for kind, names in magics.magics.items():
            for name in names:
                shell.magics_manager.magics[kind].pop(name, None)
        shell.magics_manager.registry.pop(type(magics).__name__, None)
        shell.configurables[:] = [known for known in shell.configurables if known is not magics]


def view(recording: Recording, *, values: bool) -> Any:
    """Return a widget that shows the whole `recording`."""
    loaded = list(_sessions.values())
    if loaded:
        _, session, _ = loaded[-1]
        saved = session.trace(recording, values=values).bundle()
    else:
        saved = to_mimebundle(recording, values=values)
    return widget_of(recording, values=values, saved=saved)
