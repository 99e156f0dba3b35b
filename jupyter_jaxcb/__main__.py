"""``python -m jupyter_jaxcb run script.py``, ``export FILE OUT`` and ``migrate FILE``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
