"""``python -m jupyter_jaxcb.migrate [--write] file.py file.ipynb ...``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ._files import MigrationError, read
from ._words import report


def main(arguments: Sequence[str] | None = None) -> int:
    """Report each file; return 1 if a file could not be read, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m jupyter_jaxcb.migrate",
        description="List each use of jax.experimental.host_callback, and what to write instead.",
        allow_abbrev=False,
    )
    parser.add_argument("--write", action="store_true", help="rewrite the imports, nothing else")
    parser.add_argument("files", nargs="+", metavar="FILE", help="Python files and notebooks")
    options = parser.parse_args(arguments)
    problems = []
    for name in options.files:
        try:
            source = read(name)
            print(report(source))
            problems += source.problems
            if options.write:
                done = "rewritten" if source.write() else "nothing to rewrite"
                print(f"{name}: {done}")
        except MigrationError as error:
            problems.append(str(error))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
