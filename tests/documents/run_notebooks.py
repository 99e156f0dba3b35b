"""Run the notebooks under nbval, all or those that the arguments name.

The saved outputs come from one version of JAX. With that version, nbval compares outputs. Another
version may optimize differently, so with it the cells only have to run. nbval never compares
``image/png``: pixels depend on fonts, and plotted times on the machine.
"""

import importlib
import importlib.metadata
import sys
from pathlib import Path

import pytest

from ._saved import NOTEBOOKS, PATHS, jax_of


def main():
    """Return the exit status of pytest."""
    (version,) = {jax_of(path) for path in PATHS}
    compared = importlib.metadata.version("jax") == version
    print(f"outputs of JAX {version}:", "compared" if compared else "run, but not compared")
    # The first import after an installation builds a cache of fonts and says so on standard error,
    # which would become an output of the first cell that plots.
    importlib.import_module("matplotlib.font_manager")
    mode = "--nbval" if compared else "--nbval-lax"
    plugins = ["-p", "no:cacheprovider", "-p", "tests.documents._kernels"]
    mode = [mode, f"--nbval-sanitize-with={Path(__file__).parent / 'sanitize.cfg'}"]
    options = [*plugins, *mode, "--doctest-glob=", *sys.argv[1:]]
    named = any(argument.endswith(".ipynb") for argument in sys.argv[1:])
    return pytest.main([*options, *([] if named else [str(NOTEBOOKS)])])


if __name__ == "__main__":
    sys.exit(main())
