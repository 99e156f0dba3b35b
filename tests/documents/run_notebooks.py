"""Run the notebooks under nbval.

With the version of JAX that made the saved outputs, nbval compares them with the new outputs.
Another version may elide other calls, so there the cells only have to run.
"""

import importlib.metadata
import sys

import pytest

from ._saved import NOTEBOOKS, PATHS, stated_version


def main():
    """Return the exit status of pytest."""
    (version,) = {stated_version(path) for path in PATHS}
    compared = importlib.metadata.version("jax") == version
    print(f"outputs of JAX {version}:", "compared" if compared else "run, but not compared")
    how = "--nbval" if compared else "--nbval-lax"
    options = ["-p", "no:cacheprovider", how, "--doctest-glob=", *sys.argv[1:]]
    return pytest.main([*options, str(NOTEBOOKS)])


if __name__ == "__main__":
    sys.exit(main())
