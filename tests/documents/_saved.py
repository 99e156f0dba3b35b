"""Find the notebooks and read their saved outputs."""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


def cells(path):
    """Return the cells of the notebook at `path`."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def outputs(path):
    """Return all outputs of the notebook at `path`, in the order of its cells."""
    return [output for cell in cells(path) for output in cell.get("outputs", [])]


def jax_of(path):
    """Return the JAX version of the saved outputs, which the first cell of a notebook names."""
    (version,) = re.findall(r"of JAX (\d+\.\d+\.\d+) on a CPU", "".join(cells(path)[0]["source"]))
    return version


def environments(path):
    """Return the JAX versions and backends in the saved host traces of a notebook."""
    metadata = [output.get("metadata", {}).get(MIME) for output in outputs(path)]
    return {(m["environment"]["jax"], m["environment"]["backend"]) for m in metadata if m}
