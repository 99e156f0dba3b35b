"""Print to a reader that may leave, as `head` does."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn, TextIO

from ..recording import visible


def say(text: str = "", stream: TextIO | None = None, end: str = "\n") -> None:
    """Print `text` at once, to standard output by default; nothing if its reader has left.

    Python's `print` would end the command there, before it has saved or rewritten the other files.
    """
    to = stream or sys.stdout
    try:
        print(visible(text), file=to, end=end, flush=True)
    except BrokenPipeError:
        _discard(to)


def _discard(stream: TextIO) -> None:
    """Let a stream end nowhere: Python writes what is left in it when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Parser(argparse.ArgumentParser):
    """Reads arguments, of which its errors show no control characters."""

    def error(self, message: str) -> NoReturn:
        """Print `message` and end the command."""
        super().error(visible(message))
