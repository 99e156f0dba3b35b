"""The notebooks, and facts about the outputs that are saved in them."""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


def cells(path):
    """The cells of the notebook at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def outputs(path):
    """All outputs of the notebook at `path`, from the first cell to the last."""
    return [output for cell in cells(path) for output in cell.get("outputs", [])]


def jax_of(path):
    """The version of JAX that the first cell of a notebook gives for its saved outputs."""
    (version,) = re.findall(r"of JAX (\d+\.\d+\.\d+) on a CPU", "".join(cells(path)[0]["source"]))
    return version


def recorded(path):
    """The versions of JAX and the backends in the host traces that are saved in a notebook."""
    metadata = [output.get("metadata", {}).get(MIME) for output in outputs(path)]
    return {(m["environment"]["jax"], m["environment"]["backend"]) for m in metadata if m}
