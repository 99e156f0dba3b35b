"""``python -m jupyter_jaxcb``: record a script, or export a recording, from the command line.

`_main` reads the arguments, records, prints and saves; `_script` runs the script as Python would;
`_export` writes a saved recording in another format.
"""

from ._main import main
