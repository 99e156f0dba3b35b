"""``python -m jupyter_jaxcb run --watch``: the values of a script."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from ..diagnostics import Watch, watching
from ._print import say


def add_watch(run: argparse.ArgumentParser) -> None:
    """Add the options of watching to the parser of ``run``."""
    run.add_argument(
        "--watch", action="store_true", help="also print the values of the script, line by line"
    )
    run.add_argument(
        "--names",
        metavar="NAMES",
        help="the variables to watch, as in loss,step.* for all of step, "
        "or lines of a file, as in model.py:40-60; all by default",
    )
    run.add_argument(
        "--first",
        metavar="CONDITION",
        help="only look for the first bad value: nan, inf, both, or a condition on x such as "
        '"abs(x) > 1e6"',
    )
    run.add_argument(
        "--every", metavar="N", type=int, help="send every N-th step of a compiled loop"
    )
    run.add_argument("--stop", action="store_true", help="end the script at the first bad value")
    run.add_argument(
        "--save-values",
        metavar="FILE",
        help="also write the values: .csv, .json for ui.perfetto.dev, or .html",
    )


def enter_watch(block: contextlib.ExitStack, options: argparse.Namespace) -> Watch | None:
    """Watch until `block` ends, if an option asks for it.

    Raises:
        ValueError, OSError: the options are invalid, or the file of the values
            cannot be written, which a long run must not end with.
    """
    own = options.names, options.first, options.every, options.stop, options.save_values
    if not options.watch and own == (None, None, None, False, None):
        return None
    every = 1 if options.every is None else options.every
    seen = block.enter_context(
        watching(options.names or "", first=options.first, every=every, stop=options.stop)
    )
    if options.save_values:
        seen.save(options.save_values)
        # The script may change the working directory.
        options.save_values = os.path.abspath(options.save_values)
    return seen


def report_values(seen: Watch, options: argparse.Namespace) -> None:
    """Print the values, and write them to the file that an option names."""
    path = options.save_values
    say(f"\n{seen}", sys.stderr)
    if path is not None:
        seen.save(path)
        without = " (no rows, because --first only looks for a bad value)" if options.first else ""
        say(f"values: {path}{without}", sys.stderr)
