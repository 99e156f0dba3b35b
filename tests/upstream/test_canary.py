"""The canary is silent for the installed JAX, and reports each planted change with its line."""

import ast
import os
import re
import shutil
from pathlib import Path

import jax
import pytest

from . import canary
from ._tree import COMPILED, Class, Function, MissingError, Tree
from ._uses import COMPAT, uses

JAX = Path(jax.__file__).parent
PROGRAM = Path(canary.__file__)
LOOPS, MLIR = "_src/lax/control_flow/loops.py", "_src/interpreters/mlir.py"
PXLA = "_src/interpreters/pxla.py"


def test_installed_jax_has_everything(in_process):
    done = in_process(PROGRAM, JAX.parent)
    assert re.match(r"\d{3} uses of private JAX: none is missing or changed", done.stdout)


@pytest.fixture
def planted(tmp_path):
    """Return a function that copies JAX's source with one replacement, a regular expression."""

    def plant(file, old, new):
        shutil.copytree(JAX, tmp_path / "jax", copy_function=os.symlink)
        place = tmp_path / "jax" / file
        source = place.read_text("utf-8")
        place.unlink()
        changed, count = re.subn(old, new, source)
        assert count, "planted nothing"
        place.write_text(changed, "utf-8")
        return tmp_path

    return plant


@pytest.mark.upstream
@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        (
            "_src/traceback_util.py",
            r"def register_exclusion\(",
            "def exclude(",
            "_environment.py: jax._src.traceback_util.register_exclusion is missing (optional)",
        ),
        (
            "_src/dispatch.py",
            r"def clear\(self",
            "def forget(self",
            "_required.py: jax._src.dispatch.runtime_tokens.clear is missing (required)",
        ),
        (
            PXLA,
            r"\bhas_host_callbacks\b",
            "calls_host",
            "_errors.py: jax._src.interpreters.pxla.ExecuteReplicated().has_host_callbacks "
            "is missing (optional)",
        ),
        (
            MLIR,
            r"\baxis_context\b",
            "axes",
            "_required.py: jax.interpreters.mlir.ModuleContext().axis_context is missing "
            "(required)",
        ),
        (
            "_src/interpreters/partial_eval.py",
            r"def dce_jaxpr\(",
            "def dce_jaxpr(__all, ",
            "_compilation.py: jax.interpreters.partial_eval.dce_jaxpr requires 'used_outputs' "
            "(optional)",
        ),
        (
            "_src/callback.py",
            r"def _callback_op_sharding\(\s*axis_context,",
            "def _callback_op_sharding(",
            "_required.py: jax._src.callback._callback_op_sharding takes 2 positional arguments, "
            "not 3 (required)",
        ),
        (
            LOOPS,
            r"def _while_lowering\(ctx, \*args, cond_jaxpr",
            "def _while_lowering(ctx, *args, predicate",
            "_while_loops.py: jax._src.lax.control_flow.loops._while_lowering has no parameter "
            "'cond_jaxpr' (optional)",
        ),
        (
            PXLA,
            r"(def lower_sharding_computation\(\s*)closed_jaxpr",
            r"\1jaxpr",
            "_compilation.py: jax._src.interpreters.pxla.lower_sharding_computation begins with "
            "the parameters ('jaxpr', 'api_name', 'fun_name'), not "
            "('closed_jaxpr', 'api_name', 'fun_name') (optional)",
        ),
        (
            "_src/callback.py",
            r"def pure_callback_impl\(([^)]*)\bcallback",
            r"def pure_callback_impl(\1function",
            "_builtin_callbacks.py: jax._src.callback.pure_callback_impl has no parameter "
            "'callback' (optional)",
        ),
        (
            "_src/pjit.py",
            r"def cache_miss\(",
            "def missed(",
            "_compilation.py: jax._src.pjit has no function 'cache_miss' (optional)",
        ),
        (
            "_src/api.py",
            r"\baxis_size_\b",
            "size",
            "_tracing.py: vmap_f in jax._src.api has no variable 'axis_size_' (optional)",
        ),
        (
            "interpreters/partial_eval.py",
            r"\n *dce_jaxpr as dce_jaxpr,",
            "",
            "_compilation.py: jax.interpreters.partial_eval.dce_jaxpr is missing (optional)",
        ),
    ],
)
def test_planted_change_is_reported_with_its_line(planted, capsys, file, old, new, line):
    assert canary.main(planted(file, old, new)) == 1
    printed = capsys.readouterr().out
    without_numbers = re.sub(r"^.*?/jax_compat/(\w+\.py):\d+:", r"\1:", printed, flags=re.M)
    assert line in without_numbers.splitlines(), printed


@pytest.mark.upstream
def test_line_is_that_of_the_use(planted, capsys):
    canary.main(planted("_src/config.py", r"\bpgle_profiling_runs\b", "runs"))
    place, number, _ = capsys.readouterr().out.splitlines()[0].split(":", 2)
    lines = (COMPAT.parents[2] / place).read_text("utf-8").splitlines()
    assert "pgle_profiling_runs" in lines[int(number) - 1]


@pytest.mark.upstream
def test_exit_status_is_1_if_anything_is_missing(planted, in_process):
    path = planted("_src/util.py", r"\bweakref_cache_key_types\b", "held")
    assert "weakref_cache_key_types is missing" in in_process(PROGRAM, path, status=1).stdout


def test_workflow_runs_what_exists():
    root = COMPAT.parents[2]
    workflow = (root / ".github" / "workflows" / "upstream.yml").read_text()
    (program,) = re.findall(r"run: python (\S+) jax-main", workflow)
    assert root / program == PROGRAM
    targets = re.findall(r"run: make (\S+)", workflow)
    makefile = (root / "Makefile").read_text()
    assert targets and all(f"\n{target}:" in makefile for target in targets)


def test_folder_without_jax_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"has no source of JAX: name a folder"):
        canary.main(tmp_path)


def test_version_noted_on_a_line_limits_where_it_counts():
    noted = [use for use in uses() if not canary.counts(use, (0, 8))]
    assert noted
    assert [use for use in noted if not canary.counts(use, (0, 12))] == []
    older = [use for use in uses() if not canary.counts(use, (0, 12))]
    assert older and not {use.line for use in older} & {use.line for use in noted}


def test_private_modules_that_the_package_passes_on_are_checked():
    """`jax_compat` exports whole modules, of which other folders use parts."""
    package = COMPAT.parents[1]
    used = {
        f"jax.interpreters.{found}"
        for file in package.rglob("*.py")
        for found in re.findall(r"jax_compat\.((?:ad|batching|mlir)\.\w+)", file.read_text("utf-8"))
    }
    assert used
    assert used <= {use.path for use in uses() if use.is_required}


def test_every_import_of_private_jax_is_a_use():
    found = {use.path for use in uses()}
    for file in COMPAT.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jax._src"):
                assert {f"{node.module}.{alias.name}" for alias in node.names} <= found


@pytest.fixture
def tree(tmp_path):
    """Return a function that writes modules of an invented JAX and returns its tree."""

    def write(**modules):
        (tmp_path / "jax" / "_src").mkdir(parents=True)
        (tmp_path / "jax" / "__init__.py").touch()
        (tmp_path / "jax" / "_src" / "__init__.py").touch()
        for name, source in modules.items():
            (tmp_path / "jax" / "_src" / f"{name}.py").write_text(source)
        return Tree(tmp_path)

    return write


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("from jax._src.b import f as f", Function),
        ("from jax._src.b import g as f", Function),
        ("from .b import f", Function),
        ("from jax._src.b import *", Function),
        ("import jax._src.b as b\nf = b.f", Function),
        ("from jax._src import b\nf = b.f", Function),
        ("try:\n  from jax._src.b import f\nexcept ImportError:\n  pass", Function),
        ("from jax._src.b import C as f", Class),
        ("from jaxlib.xla import f", type(COMPILED)),
    ],
)
def test_re_exports_are_followed(tree, source, kind):
    found = tree(a=source, b="def f(): ...\ng = f\nclass C: ...").find("jax._src.a.f")
    assert isinstance(found, kind)


@pytest.mark.parametrize(
    "source",
    [
        "from jax._src.b import *",
        "def g(): ...",
        "def f(): ...\n_deprecations = {'f': ('removed', None)}\ndef __getattr__(name): ...",
        "def outer():\n  def f(): ...",
    ],
)
def test_name_that_no_statement_binds_is_missing(tree, source):
    with pytest.raises(MissingError, match=r"jax\._src\.a\.f"):
        tree(a=source, b="def g(): ...").find("jax._src.a.f")


def test_deprecated_name_is_there_as_long_as_it_works(tree):
    source = "def g(): ...\n_deprecations = {'f': ('use g', g)}\nf = g"
    assert isinstance(tree(a=source).find("jax._src.a.f"), Function)


@pytest.mark.parametrize(
    "source",
    [
        "class C:\n  name: int",
        "class C:\n  def name(self): ...",
        "class C:\n  def __init__(self):\n    self.name = 1",
        "class C:\n  __slots__ = ['name']",
        "class B:\n  name = 1\nclass C(B): ...",
        "import threading\nclass C(threading.Thread): ...",
        "class C:\n  def __getattr__(self, name): ...",
    ],
)
def test_attributes_of_objects_are_found(tree, source):
    jax_tree = tree(a=f"{source}\nclass D: ...\nunion = C | D\ndef make() -> union: ...\nc: C = 1")
    for owner in ("C()", "c", "make()"):
        jax_tree.find(f"jax._src.a.{owner}.name")
    with pytest.raises(MissingError, match="missing"):
        jax_tree.find("jax._src.a.D().missing")
