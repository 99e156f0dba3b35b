"""``python -m jupyter_jaxcb run script.py`` and ``export FILE OUT``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
