"""``python -m jupyter_jaxcb.migrate [--write] file.py file.ipynb folder ...``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import add_arguments, perform


def main(arguments: Sequence[str] | None = None) -> int:
    """Report each file; return 1 if a file could not be read, else 0."""
    parser = argparse.ArgumentParser(prog="python -m jupyter_jaxcb.migrate", allow_abbrev=False)
    add_arguments(parser)
    return perform(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
