"""Tab completion for the magics."""

from __future__ import annotations

from typing import Any

from IPython.core.error import TryNext
from IPython.core.interactiveshell import InteractiveShell

from ...stack import choices_of
from ._call_argument import OPTIONS as EXPLAIN_OPTIONS
from ._callback import JaxMagics
from ._options import FLAVORS, option_names

_CALLBACK = "%%jax_callback"
_CALLBACKS = "%jax_callbacks"
_RECORD = "%jax_record"
_EXPLAIN = "%jax_explain"


def _after_callback(shell: InteractiveShell, event: Any) -> list[str]:
    before = event.line[: len(event.line) - len(event.symbol)].split()
    if len(before) == 1:
        return list(FLAVORS)
    choices = choices_of(before[-1].removeprefix("--").replace("-", "_"))
    if choices:
        return list(choices)
    return [option for option in option_names(JaxMagics.jax_callback) if option not in before]


def _after_callbacks(shell: InteractiveShell, event: Any) -> list[str]:
    return ["--stacks", "--stacks-after", "--wait"]


def _after_record(shell: InteractiveShell, event: Any) -> list[str]:
    return ["auto", "off", "--values", "--save"]


def _after_explain(shell: InteractiveShell, event: Any) -> list[str]:
    before = event.line[: len(event.line) - len(event.symbol)].split()
    if any(not word.startswith("--") for word in before[1:]):
        raise TryNext  # inside the call, where Python names are completed
    return [option for option in EXPLAIN_OPTIONS if option not in before]


def install_completion(shell: InteractiveShell) -> None:
    """Register the completions with `shell`."""
    shell.set_hook("complete_command", _after_callback, str_key=_CALLBACK)
    shell.set_hook("complete_command", _after_callbacks, str_key=_CALLBACKS)
    shell.set_hook("complete_command", _after_record, str_key=_RECORD)
    shell.set_hook("complete_command", _after_explain, str_key=_EXPLAIN)


def remove_completion(shell: InteractiveShell) -> None:
    """Undo `install_completion`."""
    dispatch = shell.strdispatchers["complete_command"]
    for key in (_CALLBACK, _CALLBACKS, _RECORD, _EXPLAIN):
        dispatch.strs.pop(key, None)
