"""Tab completion for the magics."""

from __future__ import annotations

from typing import Any

from IPython.core.error import TryNext
from IPython.core.interactiveshell import InteractiveShell

from ...stack import choices_of
from ._call_argument import OPTIONS as EXPLAIN_OPTIONS
from ._callback import JaxMagics
from ._options import FLAVORS, option_names


def _after_callback(shell: InteractiveShell, event: Any) -> list[str]:
    before = event.line[: len(event.line) - len(event.symbol)].split()
    if len(before) == 1:
        return list(FLAVORS)
    choices = choices_of(before[-1].removeprefix("--").replace("-", "_"))
    if choices:
        return list(choices)
    return [option for option in option_names(JaxMagics.jax_callback) if option not in before]


def _after_explain(shell: InteractiveShell, event: Any) -> list[str]:
    before = event.line[: len(event.line) - len(event.symbol)].split()
    if any(not word.startswith("--") for word in before[1:]):
        raise TryNext  # inside the call, where Python names are completed
    return [option for option in EXPLAIN_OPTIONS if option not in before]


_COMPLETIONS = {
    "%%jax_callback": _after_callback,
    "%jax_callbacks": lambda shell, event: ["--stacks", "--stacks-after", "--wait"],
    "%jax_record": lambda shell, event: ["auto", "off", "--values", "--save"],
    "%jax_explain": _after_explain,
}


def install_completion(shell: InteractiveShell) -> None:
    """Register the completions with `shell`."""
    for magic, complete in _COMPLETIONS.items():
        shell.set_hook("complete_command", complete, str_key=magic)


def remove_completion(shell: InteractiveShell) -> None:
    """Undo `install_completion`."""
    dispatch = shell.strdispatchers["complete_command"]
    for magic in _COMPLETIONS:
        dispatch.strs.pop(magic, None)
