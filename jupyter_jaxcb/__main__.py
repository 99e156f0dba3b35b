"""``python -m jupyter_jaxcb run [options] script.py [arguments]``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
