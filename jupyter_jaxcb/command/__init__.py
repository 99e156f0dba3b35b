"""``python -m jupyter_jaxcb``: record a script from the command line.

`_main` reads the arguments, records, prints and saves; `_script` runs the script as Python would.
"""

from ._main import main
