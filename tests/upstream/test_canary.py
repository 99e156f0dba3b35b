"""The canary is silent for the installed JAX, and reports each planted change."""

import ast
import os
import re
import shutil
from pathlib import Path

import jax
import pytest

from . import canary
from .private import COMPAT

JAX = Path(jax.__file__).parent
PROGRAM = Path(canary.__file__)
SRC, PXLA = "jax._src", "_src/interpreters/pxla.py"
# File, what is replaced there, with what, and what the canary says of it.
CHANGES = [
    (
        "_src/traceback_util.py", r"def register_exclusion\(", "def exclude(",
        f"_environment.py: {SRC}.traceback_util.register_exclusion is missing (lost: lines of ",
    ),
    (
        "_src/dispatch.py", r"def clear\(self", "def forget(self",
        f"_required.py: {SRC}.dispatch.RuntimeTokenSet.clear is missing (required)",
    ),
    (
        PXLA, r"\bhas_host_callbacks\b", "calls_host",
        f"_errors.py: {SRC}.interpreters.pxla.ExecuteReplicated.has_host_callbacks is missing",
    ),
    (
        "_src/interpreters/mlir.py", r"\baxis_context\b", "axes",
        f"_required.py: {SRC}.interpreters.mlir.ModuleContext.axis_context is missing (required)",
    ),
    (
        "_src/interpreters/partial_eval.py", r"def dce_jaxpr\(", "def dce_jaxpr(__all, ",
        "_programs.py: jax.interpreters.partial_eval.dce_jaxpr requires 'used_outputs'",
    ),
    (
        "_src/callback.py", r"def _callback_op_sharding\(\s*axis_context,",
        "def _callback_op_sharding(",
        f"{SRC}.callback._callback_op_sharding takes 2 positional arguments, not 3 (required)",
    ),
    (
        "_src/lax/control_flow/loops.py", r"def _while_lowering\(ctx, \*args, cond_jaxpr",
        "def _while_lowering(ctx, *args, predicate",
        f"{SRC}.lax.control_flow.loops._while_lowering has no parameter 'cond_jaxpr'",
    ),
    (
        PXLA, r"(def lower_sharding_computation\(\s*)closed_jaxpr", r"\1jaxpr",
        "lower_sharding_computation begins with the parameters (jaxpr, api_name, fun_name), not "
        "(closed_jaxpr, api_name, fun_name)",
    ),
    (
        "_src/callback.py", r"def pure_callback_impl\(([^)]*)\bcallback",
        r"def pure_callback_impl(\1function",
        f"{SRC}.callback.pure_callback_impl has no parameter 'callback' (lost: observing)",
    ),
    (
        "_src/pjit.py", r"def cache_miss\(", "def missed(",
        f"_programs.py, _tracing.py: {SRC}.pjit has no function 'cache_miss'",
    ),
    (
        "_src/api.py", r"\baxis_size_\b", "size",
        f"_tracing.py: vmap_f in {SRC}.api has no variable 'axis_size_'",
    ),
    (
        "interpreters/partial_eval.py", r"\n *dce_jaxpr as dce_jaxpr,", "",
        "_programs.py: jax.interpreters.partial_eval.dce_jaxpr is missing",
    ),
    (
        "_src/stages.py", r"class Lowered\(", "class LoweredProgram(",
        f"_programs.py: {SRC}.stages.Lowered._lowering is missing",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def parsed():
    """The syntax trees of the installed JAX, by module, in which nothing is wrong."""
    tree = canary.Tree(JAX.parent)
    assert list(canary.problems(tree)) == []
    return tree.parsed


def test_installed_jax_has_everything(parsed):
    assert "jax._src.pjit" in parsed


@pytest.mark.parametrize(("file", "old", "new", "said"), CHANGES, ids=[one[2] for one in CHANGES])
def test_planted_change_is_reported(parsed, file, old, new, said):
    changed, count = re.subn(old, new, (JAX / file).read_text("utf-8"))
    assert count, "planted nothing"
    tree = canary.Tree(JAX.parent)
    tree.parsed = {**parsed, f"jax.{file[:-3].replace('/', '.')}": ast.parse(changed)}
    assert said in "\n".join(canary.problems(tree))


@pytest.mark.parametrize("module", [f"{SRC}.buffer_callback", f"{SRC}.state.discharge"])
def test_module_that_moved_is_reported(parsed, module):
    tree = canary.Tree(JAX.parent)
    tree.parsed = {**parsed, module: None}
    assert f"{module} is missing" in "\n".join(canary.problems(tree))


@pytest.mark.upstream
@pytest.mark.parametrize("module", ["", "_src/mesh.py"])
def test_exit_status_is_1_if_anything_is_missing(tmp_path, in_process, module):
    shutil.copytree(JAX, tmp_path / "jax", copy_function=os.symlink)
    if module:
        (tmp_path / "jax" / module).unlink()
    said = in_process(PROGRAM, tmp_path, status=int(bool(module))).stdout
    assert ("jax._src.mesh is missing (lost: " if module else "no private name of JAX is ") in said


def test_folder_without_jax_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"has no source of JAX: name a folder"):
        canary.main(tmp_path)


@pytest.mark.parametrize(
    ("source", "is_there"),
    [
        ("from jax._src.b import g as f", True),
        ("from .b import g as f", True),
        ("from jax._src import b\nf = b.g", True),
        ("try:\n  from jax._src.b import f\nexcept ImportError:\n  f = None", True),
        ("from jaxlib.xla import f", True),
        ("def outer():\n  def f(): ...", False),
        ("class C:\n  def f(self): ...", False),
    ],
)
def test_name_is_there_if_a_statement_of_the_module_binds_it(tmp_path, source, is_there):
    (tmp_path / "jax" / "_src").mkdir(parents=True)
    for name, text in {"__init__": "", "version": "", "_src/a": source, "_src/b": "g = 1"}.items():
        (tmp_path / "jax" / f"{name}.py").write_text(text)
    assert (canary.Tree(tmp_path).find("jax._src.a", "f") is not None) == is_there


def test_workflow_runs_what_exists():
    root = COMPAT.parents[1]
    workflow = (root / ".github" / "workflows" / "upstream.yml").read_text()
    (program,) = re.findall(r"run: python (\S+) jax-main", workflow)
    assert root / program == PROGRAM
    targets = re.findall(r"run: make (\S+)", workflow)
    makefile = (root / "Makefile").read_text()
    assert targets and all(f"\n{target}:" in makefile for target in targets)
