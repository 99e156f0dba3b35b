"""The outputs that are saved in the notebooks, and the version of JAX that made them."""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


def cells(path):
    """Return the cells of the notebook at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def stated_version(path):
    """Return the version of JAX that a notebook's first cell names for its outputs."""
    (version,) = re.findall(r"of JAX (\d+\.\d+\.\d+) on a CPU", "".join(cells(path)[0]["source"]))
    return version


def recorded_versions(path):
    """Return the pairs of JAX version and backend in the host traces saved with a notebook."""
    metadata = [
        output.get("metadata", {}).get(MIME)
        for cell in cells(path)
        for output in cell.get("outputs", [])
    ]
    return {(m["environment"]["jax"], m["environment"]["backend"]) for m in metadata if m}
