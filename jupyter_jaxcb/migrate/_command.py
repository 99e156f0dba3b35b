"""The command ``migrate`` of ``python -m jupyter_jaxcb``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from ._run import migrate_files

_DESCRIPTION = """\
List each use of host_callback, JAX's or ours, and what to write instead. The files are not run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a parser the description and the arguments of the command."""
    parser.description = _DESCRIPTION
    parser.add_argument(
        "--write",
        action="store_true",
        help="rewrite the imports and dotted names, nothing else",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="Python files, notebooks, and folders with them"
    )


def perform(options: argparse.Namespace, say: Callable[..., object]) -> int:
    """Report each file with `say`, which prints; return 1 if a file could not be read, else 0."""
    problems = migrate_files(options.files, write=options.write, show=say)
    for problem in problems:
        say(problem, sys.stderr)
    return 1 if problems else 0
