"""Print the newest Python (3.12 to 3.14) on this machine, for `make test-latest`.

It searches the Pythons installed by pyenv and uv, and python3.12, python3.13, ... in PATH. If the
environment variable PYTHON is set, its value is printed unchecked.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 12), (3, 14)  # the newest JAX needs 3.12, and has wheels up to 3.14
PROBE = "import ssl, sqlite3, venv, sys; print(*sys.version_info[:2])"
MISSING = (
    "make test-latest found no Python 3.12 to 3.14 with ssl and sqlite3: install one "
    "(`uv python install 3.13`), or name one (make test-latest PYTHON=/path/to/python3.13)"
)


def candidates():
    """Return paths of possible Pythons, some of which may not start."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    uv = os.environ.get("UV_PYTHON_INSTALL_DIR") or os.path.expanduser("~/.local/share/uv/python")
    installed = glob.glob(f"{pyenv}/versions/3.*/bin/python3") + glob.glob(f"{uv}/*/bin/python3")
    minors = range(OLDEST[1], NEWEST[1] + 1)
    in_path = [shutil.which(f"python3.{minor}") for minor in minors] + [shutil.which("python3")]
    return [path for path in (*installed, *in_path) if path]


def version(python):
    """Return the version of a Python, or None if it does not start or lacks modules."""
    try:
        probe = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    found = re.fullmatch(r"(\d+) (\d+)\s*", probe.stdout)
    return (int(found[1]), int(found[2])) if found else None


def newest(paths):
    """Return the path of the newest Python in range, the first among equals, or None."""
    known = [(version(path), path) for path in paths]
    fit = [(found, path) for found, path in known if found and OLDEST <= found <= NEWEST]
    return max(fit, key=lambda pair: pair[0])[1] if fit else None


if __name__ == "__main__":
    path = os.environ.get("PYTHON") or newest(candidates())
    print(path) if path else sys.exit(MISSING)
