"""Layers: which may import which, and which folder may use private JAX.

Each layer is a folder of `jupyter_jaxcb`; other layers import its ``__init__`` only.
"""

import ast
import functools
import graphlib
import re
import sys
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jupyter_jaxcb"
WORKER = PACKAGE.with_name("jupyter_jaxcb_worker")
# layer: (our layers, third parties) it may import
MAY_IMPORT = {
    "jax_compat": (set(), {"jax", "numpy"}),
    "recording": (set(), {"numpy", "pandas"}),
    "stack": ({"recording", "jax_compat"}, {"jax", "numpy", "ml_dtypes", "jupyter_jaxcb_worker"}),
    "capabilities": (
        {"recording", "jax_compat", "stack"},
        {"jax", "numpy", "ml_dtypes", "xxhash", "numba", "llvmlite", "jupyter_jaxcb_worker"},
    ),
    "register": ({"stack", "capabilities"}, {"jax", "numpy"}),
    "diagnostics": (
        {"recording", "jax_compat", "stack", "capabilities", "register"},
        {"jax", "numpy", "ml_dtypes", "jupyter_jaxcb_worker"},
    ),
    "report": ({"recording"}, {"numpy"}),
    "notebook": (
        {"recording", "stack", "capabilities", "register", "diagnostics", "report"},
        {"IPython", "jax", "anywidget", "comm", "traitlets"},
    ),
    "host_callback": ({"stack"}, {"jax", "numpy"}),
    "testing.py": ({"recording", "report", "diagnostics"}, set()),
    "command": ({"recording", "report", "diagnostics"}, set()),
}
_STACK = "stack/options stack/trace stack/call stack/errors stack/results stack/interrupt "
# layer: {folder: the folders of this layer, or of those below it, that it may import}, from the
# bottom up. Folders import only the ``__init__`` of each other.
FOLDERS = {
    "stack": {
        "options": "",
        "trace": "",
        "call": "options trace",
        "errors": "trace call",
        "results": "trace call errors",
        "elision": "trace call",
        "interrupt": "trace call errors",
        "dispatch": "trace call results errors interrupt",
        "lowering": "options trace call errors elision interrupt dispatch",
        "flavors": "options trace call results errors elision dispatch lowering",
        "flavors/buffer": "options call results errors dispatch lowering flavors",
        "flavors/taps": (
            "options trace call results errors elision interrupt dispatch lowering flavors"
        ),
    },
    "capabilities": {
        "lint": "stack/options stack/trace stack/call",
        "host_objects": "",
        "derivatives": _STACK,
        "masked": f"derivatives {_STACK} stack/dispatch",
        "linear": f"masked {_STACK} stack/flavors",
        "executors": f"lint {_STACK} stack/dispatch",
        "compiled": f"{_STACK} stack/dispatch stack/lowering",
        "queued": f"{_STACK} stack/dispatch",
    },
    "register": {
        "": (
            "stack/options stack/call stack/results stack/dispatch stack/flavors "
            "stack/flavors/buffer stack/flavors/taps capabilities/lint capabilities/masked "
            "capabilities/derivatives capabilities/executors capabilities/compiled "
            "capabilities/queued capabilities/linear"
        )
    },
    "recording": {"recorder": "", "files": ""},
    "report": {
        "summary": "",
        "text": "summary",
        "profile": "summary text",
        "outputs": "summary text",
        "frontend": "summary text profile",
        "export": "summary text profile frontend",
    },
    "notebook": {
        "errors": "",
        "display": "",
        "session": "display errors",
        "magics": "session display",
    },
    "diagnostics": {
        "record": (
            "stack/trace stack/call stack/elision stack/interrupt stack/dispatch capabilities/lint"
        ),
        "observe": (
            "record stack/trace stack/call stack/elision stack/dispatch stack/lowering "
            "capabilities/lint"
        ),
        "profile": "record observe stack/trace stack/elision",
        "explain": "record stack/trace stack/call stack/errors",
        "check": (
            "record stack/trace stack/call stack/errors stack/results "
            "stack/flavors/buffer capabilities/lint capabilities/derivatives"
        ),
        "hang": "record stack/trace stack/interrupt capabilities/lint",
        "notes": "stack/trace stack/dispatch stack/lowering",
        "watch": "notes stack/trace stack/lowering",
    },
}
# What names a capability in the code, with the number of modules that may do so besides its own,
# whose folder or file begins with the last word. Others read the plan, or facts that it registers.
NAMED = [
    ({"queued"}, 11, "queue"),
    ({"masked"}, 14, "mask"),
    ({"numba", "compiler"}, 2, "compiled"),
    ({"spread", "executor", "executors"}, 12, "executor"),
    ({"buffer"}, 12, "buffer"),
]
PRIVATE_JAX = ("jax._src", "jax.interpreters", "jax.extend")


def modules(layer):
    place = PACKAGE / layer
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def folder(path):
    """Return the folder of a module ("stack/call"); a single-file layer is its own folder."""
    found = path.relative_to(PACKAGE)
    return found.name if found.name in MAY_IMPORT else found.parent.as_posix()


def imports(source, place):
    """Return all names that `source`, a module in the folder `place` ("stack/call"), imports."""
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


@functools.cache
def exported(layer):
    """Return the names in the ``__init__`` of a layer; such a name may equal that of a folder."""
    init = PACKAGE / layer / "__init__.py"
    return {full.rpartition(".")[2] for full in imports(init.read_text(), layer)}


def split_name(full):
    """Split "jupyter_jaxcb.stack.trace.find_site" into "stack/call" and the rest of its parts."""
    parts, found = full.split(".")[1:], ""
    while parts and (PACKAGE / found / parts[0] / "__init__.py").exists():
        if found in FOLDERS and parts[1:] == [] and parts[0] in exported(found):
            break
        found = f"{found}/{parts.pop(0)}".strip("/")
    return found, parts


def importable(place):
    """Return the folders that a module in `place` may import; None if its layer has none."""
    layer, _, within = place.partition("/")
    if layer not in FOLDERS:
        return None
    if not within and within not in FOLDERS[layer]:  # the layer's ``__init__``
        return {f"{layer}/{name}" for name in FOLDERS[layer]}
    return {
        name if name.startswith(("stack/", "capabilities/")) else f"{layer}/{name}"
        for name in FOLDERS[layer][within].split()
    }


def is_loose(full, layer):
    """Return whether the name is from a module in the layer itself, beside its folders."""
    parts = full.split(".")
    return len(parts) > 3 and parts[1] == layer and (PACKAGE / layer / f"{parts[2]}.py").exists()


def forbidden_imports(source, place):
    """Return the imports of `source` that are forbidden in the folder `place`."""
    layer = place.split("/")[0]
    ours, others = MAY_IMPORT[layer]
    forbidden = []
    for full in imports(source, place):
        parts = full.split(".")
        if parts[0] == "jupyter_jaxcb":
            other, names = split_name(full)
            through_init = not (len(names) > 1 or (names and names[0].startswith("_")))
            visible = importable(place)
            if other == place or is_loose(full, layer):
                continue
            if (
                visible is None
                or other.split("/")[0] not in ("stack", "capabilities", layer)
                or other in ours
            ):
                below = any(name.startswith(f"{other}/") for name in visible or ())
                allowed = other in ours and through_init and not below
            else:
                allowed = other in visible and through_init
            if not allowed:
                forbidden.append(full)
        elif parts[0] not in others and parts[0] not in sys.stdlib_module_names:
            forbidden.append(full)
        if full.startswith(PRIVATE_JAX) and place != "jax_compat":
            forbidden.append(full)
    return forbidden


@pytest.mark.parametrize(
    "path",
    [path for layer in MAY_IMPORT for path in modules(layer)],
    ids=lambda path: f"{folder(path)}/{path.name}",
)
def test_module_imports_only_what_its_layer_may(path):
    assert forbidden_imports(path.read_text(), folder(path)) == []


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("recording", "from ..stack import pure"),
        ("recording", "import jax"),
        ("stack", "from ..report import to_text"),
        ("report", "from ..stack import pure"),
        ("report", "import IPython"),
        ("notebook", "from ..stack.flavors import pure_callback"),
        ("notebook", "from ..stack.flavors._pure import pure_callback"),
        ("notebook", "import jupyter_jaxcb.report.text._html"),
        ("stack/call", "from jax.extend.core import Primitive"),
        ("stack/call", "import jax._src.core"),
        ("jax_compat", "from ...report import to_text"),
        ("jax_compat", "from ..stack.trace import Block"),
        ("stack/call", "from ..results import ResultError"),
        ("stack/errors", "from ..results import ResultError"),
        ("stack/results", "from ..dispatch import crossing"),
        ("stack/elision", "from ..lowering import note_lowered"),
        ("stack/lowering", "from ...capabilities.lint import jax_inside"),
        ("stack/lowering", "from ...capabilities import queue"),
        ("capabilities/lint", "from ...stack.dispatch import crossing"),
        ("capabilities/lint", "from ..queued import queue"),
        ("capabilities/derivatives", "from ...stack.flavors import pure_callback"),
        ("stack/dispatch", "from ..elision import bound"),
        ("stack/dispatch", "from ...capabilities.executors import CROSS"),
        ("capabilities/executors", "from ...stack.lowering import lower_host_call"),
        ("stack/lowering", "from ..flavors import pure_callback"),
        ("stack/flavors", "from ...register import pure"),
        ("stack/flavors", "from .taps import bind_tap"),
        ("stack/flavors/taps", "from ....register import tap"),
        ("register", "from ..stack.lowering import lower_host_call"),
        ("register", "from ..stack.flavors._pure import bind_pure"),
        ("stack/call", "from .. import pure"),
        ("stack", "from ..host_callback import id_tap"),
        ("stack/call", "from ...diagnostics import record"),
        ("recording/files", "from ..recorder import Recorder"),
        ("recording/recorder", "from ..files import SCHEMA"),
        ("recording/files", "import jax"),
        ("report/summary", "from ..text import to_text"),
        ("report/text", "from ..frontend import to_mimebundle"),
        ("report/text", "from ..profile import headline"),
        ("report/frontend", "from ..export import export"),
        ("report/export", "from ..text._html import to_html"),
        ("report/frontend", "from ...stack import pure"),
        ("notebook/errors", "from ..display import HostTrace"),
        ("notebook/display", "from ..session import Session"),
        ("notebook/session", "from ..magics import JaxMagics"),
        ("notebook/magics", "from ..errors import ErrorDisplay"),
        ("notebook/magics", "from ...stack.call import Bind"),
        ("notebook/display", "from ...report.text import to_html"),
        ("diagnostics/record", "from ..observe import observe_jax"),
        ("diagnostics/record", "from ...stack import pure"),
        ("diagnostics/observe", "from ..explain import explain"),
        ("diagnostics/explain", "from ..check import check"),
        ("diagnostics/profile", "from ..explain import explain"),
        ("host_callback", "from ..stack.flavors.taps import bind_tap"),
        ("host_callback", "from ..recording import Site"),
        ("host_callback", "import jax.interpreters.ad"),
    ],
)
def test_forbidden_import_is_found(layer, line):
    assert forbidden_imports(line, layer)


@functools.cache
def words_of(path):
    """Return the words of all names in a module: those of ``build_queued`` are build and queued."""
    with tokenize.open(path) as file:
        tokens = [*tokenize.generate_tokens(file.readline)]
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    return {word.lower() for name in names for word in re.split(r"_+|(?<=[a-z])(?=[A-Z])", name)}


@pytest.mark.parametrize(("words", "most", "own"), NAMED, ids=[own for *_, own in NAMED])
def test_capability_is_named_in_few_modules_besides_its_own(words, most, own):
    """If the number falls, lower it here."""
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if words & words_of(path)
        and not any(part.strip("_").startswith(own) for part in path.relative_to(PACKAGE).parts)
    ]
    assert len(found) <= most, found


def import_cycle(sources):
    """Return modules that import each other in a cycle; None if there are none.

    Imports for type checking count too.

    Args:
        sources: (folder, source code) by module name; the name of a folder is its ``__init__``.
    """
    graph = {}
    for name, (place, source) in sources.items():
        found = graph[name] = set()
        for full in imports(source, place):
            while full and full not in sources:
                full = full.rpartition(".")[0]
            found |= {full} - {"", name}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_modules_do_not_import_each_other_in_a_cycle():
    paths = PACKAGE.rglob("*.py")
    sources = {module_name(path): (folder(path), path.read_text()) for path in paths}
    assert import_cycle(sources) is None
    name = "jupyter_jaxcb.recording._facts"  # all others import it
    place, source = sources[name]
    sources[name] = place, f"{source}\nfrom ._recording import Recording\n"
    assert name in import_cycle(sources)


def test_each_name_that_a_folder_exports_is_used_elsewhere():
    """Ruff does not tell: to it, each import in an ``__init__`` may be for others."""
    root = PACKAGE.parent
    tops = ("jupyter_jaxcb*", "tests", "docs")
    paths = [path for top in tops for path in root.glob(f"{top}/**/*.py")]
    words = {path: re.findall(r"\w+", path.read_text()) for path in paths}
    unused = []
    for init in PACKAGE.glob("*/**/__init__.py"):
        others = set().union(*(words[path] for path in paths if path.parent != init.parent))
        own = f"jupyter_jaxcb.{folder(init).replace('/', '.')}."
        for full in imports(init.read_text(), folder(init)):
            name = full.rpartition(".")[2]
            if full.startswith(own) and name not in others and words[init].count(name) == 1:
                unused.append(full)
    assert unused == []


def test_private_jax_is_in_one_folder():
    users = {
        folder(path)
        for path in PACKAGE.rglob("*.py")
        if any(full.startswith(PRIVATE_JAX) for full in imports(path.read_text(), folder(path)))
    }
    assert users == {"jax_compat"}


def test_worker_needs_only_numpy():
    """Workers run on other machines, where the package and JAX need not be installed."""
    found = {
        full.partition(".")[0]
        for path in WORKER.rglob("*.py")
        for full in imports(path.read_text(), "../jupyter_jaxcb_worker")
    }
    assert "numpy" in found
    assert found - sys.stdlib_module_names - {"jupyter_jaxcb", "numpy"} == {"cloudpickle"}


def test_every_layer_is_listed():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert folders | files == set(MAY_IMPORT)


@pytest.mark.parametrize("folder", ["stack", "diagnostics"])
def test_every_folder_has_its_tests_at_the_same_path(folder):
    tests = Path(__file__).parent / folder
    names = {path.parent.name for path in (PACKAGE / folder).glob("*/__init__.py")}
    assert {name for name in names if not any((tests / name).glob("**/test_*.py"))} == set()


def test_no_module_grows_beyond_500_lines():
    """A longer module most likely holds more than one idea."""
    folders = (PACKAGE, WORKER, Path(__file__).parent)
    lengths = {
        str(path): len(path.read_text().splitlines())
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert [path for path, length in lengths.items() if length > 500] == []


@pytest.fixture(scope="module")
def loaded(in_process):
    """Return a function that lists the modules a process has loaded after `statement`."""

    @functools.cache
    def run(statement):
        return in_process(f"{statement}; import json, sys; print(json.dumps([*sys.modules]))").value

    return run


NOTEBOOK = ("IPython", "ipywidgets", "jupyter_jaxcb.notebook")


@pytest.mark.parametrize("module", NOTEBOOK)
def test_import_leaves_the_notebook_stack_alone(loaded, module):
    assert module not in loaded("import jupyter_jaxcb")
    assert module in loaded(f"import {', '.join(NOTEBOOK)}")  # the check itself can fail


def test_host_callback_is_imported_only_on_demand(loaded):
    assert "jupyter_jaxcb.host_callback" not in loaded("import jupyter_jaxcb")
    imported = loaded("from jupyter_jaxcb import host_callback")
    assert "jupyter_jaxcb.host_callback" in imported
    assert "IPython" not in imported


def test_recording_and_report_need_no_jax(in_process):
    """An empty package replaces ours, whose ``__init__`` would import the stack."""
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
