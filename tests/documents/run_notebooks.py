"""Runs the notebooks under nbval.

With the JAX that the saved outputs are of, what comes out is compared with them. What becomes of a
call is another matter in another JAX, so there the cells are run, and only have to run.
"""

import importlib.metadata
import sys

import pytest

from ._saved import NOTEBOOKS, PATHS, said


def main():
    """The exit status of pytest."""
    (version,) = {said(path) for path in PATHS}
    compared = importlib.metadata.version("jax") == version
    print(f"outputs of JAX {version}:", "compared" if compared else "run, but not compared")
    how = "--nbval" if compared else "--nbval-lax"
    options = ["-p", "no:cacheprovider", how, "--doctest-glob=", *sys.argv[1:]]
    return pytest.main([*options, str(NOTEBOOKS)])


if __name__ == "__main__":
    sys.exit(main())
