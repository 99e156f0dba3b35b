"""In the saved notebooks, each frame of a traceback shows the line that it names."""

import json
import re
from pathlib import Path

import pytest

from tests._tracebacks import wrong_frames

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
COLOR = re.compile(r"\x1b\[[0-9;]*m")


def tracebacks(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    sources = {cell["execution_count"]: "".join(cell["source"]) for cell in cells}
    shown = [
        COLOR.sub("", "\n".join(output["traceback"]))
        for cell in cells
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]
    return shown, sources


@pytest.mark.kept
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_arrow_of_each_frame_is_at_the_line_that_the_header_names(path):
    shown, sources = tracebacks(path)
    assert [wrong_frames(one, sources) for one in shown] == [[]] * len(shown)
