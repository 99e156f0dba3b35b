"""Run a script, or a module, as ``python`` would."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a file as ``python path arguments`` does.

    The script stays the module ``__main__``, for exit handlers, pickles and worker processes.
    """
    file = os.path.abspath(path)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.argv = [path, *arguments]
    main = ModuleType("__main__")
    main.__dict__.update(__file__=file, __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = main
    with io.open_code(file) as source:
        # dont_inherit: the script has its own `from __future__` imports.
        code = compile(source.read(), file, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Run a module as ``python -m name arguments`` does."""
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def without_our_frames(tb: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins in the script; None if nothing of it ran."""
    while tb is not None and _is_ours(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return tb


def _is_ours(file: str) -> bool:
    return file.startswith((_PACKAGE, "<frozen runpy>", contextlib.__file__))
