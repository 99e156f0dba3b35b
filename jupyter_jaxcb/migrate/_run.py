"""Report and rewrite files and folders: the command ``migrate`` of ``python -m jupyter_jaxcb``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ._files import MigrationError, Source, files_in, read
from ._words import notes, report, written

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


def migrate_files(names: Iterable[str], *, write: bool, show: Callable[[str], object]) -> list[str]:
    """Report each file, or each file with uses in a folder; return the problems.

    Args:
        names: files and folders.
        write: whether to rewrite the files too.
        show: called with each text.
    """
    problems: list[str] = []
    sources: list[Source] = []
    for name in names:
        files = files_in(name)
        uses_it = [_read_file(file, write, show, problems, sources, Path(name)) for file in files]
        if Path(name).is_dir():
            count = "1 file" if len(files) == 1 else f"{len(files)} files"
            show(f"{name}: {count}, {sum(uses_it)} with uses of host_callback")
    for note in notes(sources):
        show(note)
    return problems


def _read_file(
    file: Path,
    write: bool,
    show: Callable[[str], object],
    problems: list[str],
    sources: list[Source],
    given: Path,
) -> bool:
    """Report one file, found in `given`; return whether it uses host_callback."""
    try:
        source = read(file)
        problems += source.problems
        uses_it = bool(source.uses())
        if uses_it or file == given:
            show(report(source))
            if write:
                show(f"{file}: {written(source)}")
    except MigrationError as error:
        problems.append(str(error))
        return False
    sources.append(source)
    return uses_it
