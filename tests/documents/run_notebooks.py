"""Run the notebooks under nbval.

The saved outputs are those of one version of JAX. With that version nbval compares outputs; with
another version JAX may optimize differently, so there the cells only have to run. Pictures are
never compared: nbval skips ``image/png``, and pixels depend on fonts, plotted times on the machine.
"""

import importlib
import importlib.metadata
import sys

import pytest

from ._saved import NOTEBOOKS, PATHS, jax_of


def main():
    """Return the exit status of pytest."""
    (version,) = {jax_of(path) for path in PATHS}
    compared = importlib.metadata.version("jax") == version
    print(f"outputs of JAX {version}:", "compared" if compared else "run, but not compared")
    # The first import after an installation looks for fonts, and reports that on standard error,
    # which would be an output of the first cell that plots.
    importlib.import_module("matplotlib.font_manager")
    mode = "--nbval" if compared else "--nbval-lax"
    options = ["-p", "no:cacheprovider", mode, "--doctest-glob=", *sys.argv[1:]]
    return pytest.main([*options, str(NOTEBOOKS)])


if __name__ == "__main__":
    sys.exit(main())
