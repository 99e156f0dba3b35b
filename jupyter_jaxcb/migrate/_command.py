"""The command ``migrate``, of ``jupyter_jaxcb.migrate`` and of ``jupyter_jaxcb``."""

from __future__ import annotations

import argparse
import sys

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


def perform(options: argparse.Namespace) -> int:
    """Report each file; return 1 if a file could not be read, else 0."""
    problems = migrate_files(options.files, write=options.write, show=print)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0
