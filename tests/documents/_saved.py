"""What the notebooks say of the outputs that are saved in them."""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


def cells(path):
    """The cells of the notebook at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def said(path):
    """The version of JAX that a notebook's first cell gives for its outputs."""
    (version,) = re.findall(r"of JAX (\d+\.\d+\.\d+) on a CPU", "".join(cells(path)[0]["source"]))
    return version


def recorded(path):
    """The versions of JAX and the backends in the host traces that are saved with a notebook."""
    metadata = [
        output.get("metadata", {}).get(MIME)
        for cell in cells(path)
        for output in cell.get("outputs", [])
    ]
    return {(m["environment"]["jax"], m["environment"]["backend"]) for m in metadata if m}
