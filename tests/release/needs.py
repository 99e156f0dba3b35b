"""Exit with one line if something that a target of `make` needs is missing.

``python3 tests/release/needs.py node chromium network`` checks these and Python itself. It runs
with the Python that the target would use, perhaps an old one, before anything is built.
"""

import os
import re
import shutil
import subprocess
import sys

PYTHON, NODE = (3, 11), (20, 19)  # the oldest ones that work
BROWSERS = "chromium", "google-chrome"


def output(*command):
    """Return what a command prints, or None if it is missing, fails or takes a minute."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def python():
    """Return what is wrong with this Python."""
    if sys.version_info < PYTHON:
        found = ".".join(map(str, sys.version_info[:2]))
        return (
            f"Python 3.11 or later is needed, and {sys.executable} is {found}: name another one, "
            "as in make lab PYTHON=python3.11"
        )
    if output(sys.executable, "-c", "import venv, ensurepip") is None:
        return f"{sys.executable} lacks venv. Install it, as in: sudo apt-get install python3-venv"


def node():
    """Return what is wrong with Node and npm."""
    found = re.match(r"v(\d+)\.(\d+)", output("node", "--version") or "")
    if not found or tuple(map(int, found.groups())) < NODE or not shutil.which("npm"):
        found = found.group() if found else "nothing"
        return (
            "Node 20.19 or later with npm is needed to build the front end, and PATH has "
            f"{'no npm' if found != 'nothing' and not shutil.which('npm') else found}: "
            "see https://nodejs.org/en/download"
        )


def chromium():
    """Return what is wrong with the browser; `make` installs one where it may."""
    may_install = hasattr(os, "getuid") and os.getuid() == 0 and shutil.which("apt-get")
    if not may_install and not any(map(shutil.which, BROWSERS)):
        return (
            "Chromium is needed for the browser tests: install it with the system's package "
            "manager, as in: sudo apt-get install chromium"
        )


def network():
    """Return what is wrong with the way to Python's packages."""
    options = "--quiet", "--disable-pip-version-check", "--retries", "0", "--timeout", "15"
    if output(sys.executable, "-m", "pip", "index", "versions", "hatchling", *options) is None:
        return (
            "pip cannot reach its package index, from which the first run installs: connect first"
        )


NEEDS = {"python": python, "node": node, "chromium": chromium, "network": network}


if __name__ == "__main__":
    problems = [NEEDS[name]() for name in ("python", *sys.argv[1:])]
    sys.exit("\n".join(filter(None, problems)) or 0)
