"""``python -m jupyter_jaxcb export``: write a saved recording in another format."""

from __future__ import annotations

import argparse
import io
import os
from typing import Any

from ..recording import FORMATS, LIMIT_BYTES, check_path, load
from ..report import OF_SITES
from ._print import say

_DESCRIPTION = """\
Write a saved recording in another format, which the suffix of OUT selects. With - as OUT, print the
report of the call sites, by default as Markdown, for an issue or an assistant."""


def add_export(commands: Any) -> None:
    """Add the command to the subparsers of a parser."""
    export = commands.add_parser(
        "export",
        help="write a saved recording in another format",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    export.add_argument(
        "--limit-bytes",
        type=int,
        default=LIMIT_BYTES,
        metavar="N",
        help="the memory that reading may take (default: %(default)s)",
    )
    export.add_argument(
        "--format",
        choices=OF_SITES,
        help="what to print if OUT is - (default: .md)",
    )
    export.add_argument("file", metavar="FILE", help="a .jaxcb or .json file")
    export.add_argument("out", metavar="OUT", help="the file to write; - prints a report")
    export.set_defaults(perform=_export, parser=export)


def _export(options: argparse.Namespace) -> int:
    out = options.out
    if options.format and out != "-":
        options.parser.error(
            f"--format {options.format} is for OUT -, and the suffix of {out!r} selects the format."
        )
    try:
        if out != "-":
            check_path(out)
        recording = load(options.file, limit_bytes=options.limit_bytes)
        if out == "-":
            file = io.BytesIO()
            FORMATS[options.format or ".md"](recording, file)
            say(file.getvalue().decode(), end="")
        else:
            recording.save(out)
    except (OSError, ValueError) as error:
        options.parser.error(_words(error))
    return 0


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot open {os.fspath(error.filename)!r}: {error.strerror}."
    return str(error)
