"""Report and rewrite files and folders, for the command and for the magic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ._files import MigrationError, Source, files_in, read
from ._words import notes, report, written


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
        uses_it = any(part.uses() for part in source.parts)
        if uses_it or file == given:
            show(report(source))
            if write:
                show(f"{file}: {written(source)}")
    except MigrationError as error:
        problems.append(str(error))
        return False
    sources.append(source)
    return uses_it
