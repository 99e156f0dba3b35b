"""``python -m jupyter_jaxcb run --watch``: the values of a script."""

from __future__ import annotations

import argparse
import contextlib

from ..diagnostics import Watch, watching


def add_watch(run: argparse.ArgumentParser) -> None:
    """Add the options of watching to the parser of ``run``."""
    run.add_argument(
        "--watch", action="store_true", help="also print the values of the script, line by line"
    )
    run.add_argument(
        "--names", metavar="NAMES", help="the variables to watch, as in loss,grads; all by default"
    )
    run.add_argument(
        "--first",
        metavar="CONDITION",
        help="only look for the first bad value: nan, inf, both, or a condition on x such as "
        '"abs(x) > 1e6"',
    )
    run.add_argument("--stop", action="store_true", help="end the script at the first bad value")


def enter_watch(block: contextlib.ExitStack, options: argparse.Namespace) -> Watch | None:
    """Watch until `block` ends, if an option asks for it.

    Raises:
        ValueError: the options are invalid.
    """
    if not (options.watch or options.names or options.first or options.stop):
        return None
    return block.enter_context(
        watching(options.names or "", first=options.first, stop=options.stop)
    )
