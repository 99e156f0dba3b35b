"""See what JAX really does with your Python callbacks.

After ``%load_ext jupyter_jaxcb``, ``%%jax_callback`` turns the functions of a cell into JAX
callbacks, and every cell shows its host calls. Everything works without IPython too.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from inspect import ismodule as _is_module
from typing import TYPE_CHECKING as _CHECKING
from typing import Any as _Any

from .capabilities import ExecutorError as ExecutorError
from .capabilities import FinishedElementsWarning as FinishedElementsWarning
from .capabilities import ImpureFunctionWarning as ImpureFunctionWarning
from .capabilities import JaxInHostFunctionWarning as JaxInHostFunctionWarning
from .capabilities import NotVaryingWarning as NotVaryingWarning
from .capabilities import QueueFullWarning as QueueFullWarning
from .capabilities import WorkerLostError as WorkerLostError
from .capabilities import WorkerStateWarning as WorkerStateWarning
from .capabilities import drop_queued as drop_queued
from .capabilities import host_object as host_object
from .capabilities import set_queue_limit as set_queue_limit
from .recording import WIDGETS as _WIDGETS
from .recording import Recording as _Recording
from .register import buffer as buffer
from .register import debug as debug
from .register import io as io
from .register import pure as pure
from .register import tap as tap
from .stack import CallInfo as CallInfo
from .stack import OneDeviceWarning as OneDeviceWarning
from .stack import ResultStructureWarning as ResultStructureWarning
from .stack import RetainedBufferWarning as RetainedBufferWarning
from .stack import buffer_callback as buffer_callback
from .stack import call_info as call_info
from .stack import debug_callback as debug_callback
from .stack import debug_print as debug_print
from .stack import disabled as disabled
from .stack import host_error as host_error
from .stack import io_callback as io_callback
from .stack import pure_callback as pure_callback
from .stack import strict_errors as strict_errors

if _CHECKING:
    from .diagnostics import Watch as Watch
    from .diagnostics import check as check
    from .diagnostics import explain as explain
    from .diagnostics import explain_matrix as explain_matrix
    from .diagnostics import observe_jax as observe_jax
    from .diagnostics import profile as profile
    from .diagnostics import record as record
    from .diagnostics import watch as watch
    from .diagnostics import watchdog as watchdog
    from .diagnostics import watching as watching
    from .recording import Check as Check
    from .recording import Checks as Checks
    from .recording import Recording as Recording
    from .recording import RecordingFileError as RecordingFileError
    from .recording import load as load
    from .report import export as export

# Names that load recordings and reports, which a program that only makes calls does without.
_LATER = {
    "diagnostics": "Watch check explain explain_matrix observe_jax profile record watch watchdog "
    "watching",
    "recording": "Check Checks Recording RecordingFileError load",
    "report": "export",
}

__version__ = _version("jupyter_jaxcb")


def __getattr__(name: str) -> _Any:
    for layer, names in _LATER.items():
        if name in names.split():
            _import_module(".report", __name__)  # what prints recordings
            value = getattr(_import_module(f".{layer}", __name__), name)
            return globals().setdefault(name, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *" ".join(_LATER.values()).split()})


def view(recording: "Recording", *, values: bool = False) -> _Any:
    """Return a widget that shows a whole recording: call sites, every host call, a timeline.

    Cells show their host trace without it, and marimo shows this widget for a recording. It shows
    every call, not just the first 20,000, and can be combined with other widgets. It uses
    anywidget, and was tried in Chromium with JupyterLab 4.2 and 4.6, Notebook 7, Voila 0.5, marimo
    0.25 and the HTML of nbconvert; VS Code and Colab were not tried.

    Args:
        recording: the recording of `record` or ``%%jax_record name``.
        values: show the sample values too. A notebook saved with widget state contains them.

    Returns:
        An `anywidget.AnyWidget`.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = double(np.arange(3))
    >>> widget = jaxcb.view(r.recording)
    """
    from .notebook import view as of_recording

    return of_recording(recording, values=values)


_WIDGETS[_Recording] = view


def load_ipython_extension(shell: _Any) -> None:
    """Load the extension (``%load_ext jupyter_jaxcb``): magics, and a host trace under cells."""
    from .notebook import load

    load(shell)


def unload_ipython_extension(shell: _Any) -> None:
    """Unload the extension (``%unload_ext jupyter_jaxcb``), undoing everything it did."""
    from .notebook import unload

    unload(shell)


_public = [name for name in __dir__() if name[0] != "_" and not _is_module(globals().get(name))]
__all__ = _public  # pyright: ignore[reportUnsupportedDunderAll]
