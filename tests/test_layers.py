"""The arrows: which layer may import which, and what of JAX appears where.

Each layer is a folder of `jupyter_jaxcb`; another layer sees its ``__init__`` only.
"""

import ast
import functools
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jupyter_jaxcb"
WORKER = PACKAGE.with_name("jupyter_jaxcb_worker")
# layer: (our layers, third parties) it may import
MAY_IMPORT = {
    "recording": (set(), {"numpy", "pandas"}),
    "stack": ({"recording"}, {"jax", "numpy", "ml_dtypes", "jupyter_jaxcb_worker"}),
    "report": ({"recording"}, {"numpy", "pyarrow"}),
    "migrate": (set(), set()),
    "notebook": (
        {"recording", "stack", "report", "migrate"},
        {"IPython", "jax", "anywidget", "comm", "traitlets"},
    ),
    "host_callback.py": ({"stack"}, {"jax"}),
    "testing.py": ({"recording", "report", "stack"}, set()),
}
PRIVATE_JAX = ("jax._src", "jax.interpreters", "jax.extend")


def modules(layer):
    place = PACKAGE / layer
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def folder(path):
    """Where a module stands, "stack/_jax"; one that is a layer by itself is its own folder."""
    found = path.relative_to(PACKAGE)
    return found.name if found.name in MAY_IMPORT else found.parent.as_posix()


def imports(source, place):
    """Everything that `source`, a module in the folder `place` ("stack", "stack/_jax"), imports."""
    parents = ["jupyter_jaxcb", *place.split("/")]
    if place.endswith(".py"):
        parents.pop()
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            found += [f"{base}.{alias.name}" for alias in node.names]
    return found


def broken_arrows(source, place):
    """What `source` imports although a module in the folder `place` may not."""
    layer = place.split("/")[0]
    ours, others = MAY_IMPORT[layer]
    broken = []
    for full in imports(source, place):
        parts = full.split(".")
        if parts[0] == "jupyter_jaxcb":
            other = parts[1] if len(parts) > 1 else ""
            inside = other == layer
            through_init = other in ours and not (len(parts) > 2 and parts[2].startswith("_"))
            if not inside and not through_init:
                broken.append(full)
        elif parts[0] not in others and parts[0] not in sys.stdlib_module_names:
            broken.append(full)
        if full.startswith(PRIVATE_JAX) and place != "stack/_jax":
            broken.append(full)
    return broken


@pytest.mark.parametrize(
    "path",
    [path for layer in MAY_IMPORT for path in modules(layer)],
    ids=lambda path: f"{folder(path)}/{path.name}",
)
def test_module_imports_only_what_its_layer_may(path):
    assert broken_arrows(path.read_text(), folder(path)) == []


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("recording", "from ..stack import pure"),
        ("recording", "import jax"),
        ("stack", "from ..report import to_text"),
        ("report", "from ..stack import pure"),
        ("report", "import IPython"),
        ("notebook", "from ..stack._pure import pure_callback"),
        ("notebook", "import jupyter_jaxcb.report._html"),
        ("stack", "from jax.extend.core import Primitive"),
        ("stack", "import jax._src.core"),
        ("stack/_jax", "from ...report import to_text"),
        ("stack", "from ..host_callback import id_tap"),
        ("host_callback.py", "from .stack._tap import bind_tap"),
        ("host_callback.py", "from .recording import Site"),
        ("host_callback.py", "import jax.interpreters.ad"),
        ("migrate", "import numpy"),
        ("migrate", "from ..stack import tap"),
    ],
)
def test_broken_arrow_is_seen(layer, line):
    assert broken_arrows(line, layer)


def test_private_jax_is_in_one_folder():
    users = {
        folder(path)
        for path in PACKAGE.rglob("*.py")
        if any(full.startswith(PRIVATE_JAX) for full in imports(path.read_text(), folder(path)))
    }
    assert users == {"stack/_jax"}


def test_worker_needs_numpy_alone():
    """What runs in another process, on another machine, has little to bring along."""
    found = {
        full.partition(".")[0]
        for path in WORKER.rglob("*.py")
        for full in imports(path.read_text(), "../jupyter_jaxcb_worker")
    }
    assert "numpy" in found
    assert found - sys.stdlib_module_names - {"jupyter_jaxcb", "numpy"} == {"cloudpickle"}


def test_every_layer_is_drawn():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert folders | files == set(MAY_IMPORT)


def test_no_module_grows_beyond_500_lines():
    """What is longer is most likely more than one idea."""
    folders = (PACKAGE, WORKER, Path(__file__).parent)
    lengths = {
        str(path): len(path.read_text().splitlines())
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert [path for path, length in lengths.items() if length > 500] == []


@pytest.fixture(scope="module")
def loaded(in_process):
    """The modules that a process has after `statement`."""

    @functools.cache
    def run(statement):
        return in_process(f"{statement}; import json, sys; print(json.dumps([*sys.modules]))").value

    return run


NOTEBOOK = ("IPython", "ipywidgets", "jupyter_jaxcb.notebook")


@pytest.mark.parametrize("module", NOTEBOOK)
def test_import_leaves_the_notebook_stack_alone(loaded, module):
    assert module not in loaded("import jupyter_jaxcb")
    assert module in loaded(f"import {', '.join(NOTEBOOK)}")  # the check itself can fail


def test_host_callback_comes_when_it_is_asked_for(loaded):
    assert "jupyter_jaxcb.host_callback" not in loaded("import jupyter_jaxcb")
    asked = loaded("from jupyter_jaxcb import host_callback")
    assert "jupyter_jaxcb.host_callback" in asked
    assert "IPython" not in asked


def test_recording_and_report_need_no_jax(in_process):
    """An empty package stands for ours, whose __init__ brings the stack along."""
    code = f"""
import sys, types
sys.modules["jax"] = None  # importing it fails
package = sys.modules["jupyter_jaxcb"] = types.ModuleType("jupyter_jaxcb")
package.__path__ = [{str(PACKAGE)!r}]
from jupyter_jaxcb.recording import Recording
from jupyter_jaxcb.report import to_mimebundle
to_mimebundle(Recording())
"""
    in_process(code)
