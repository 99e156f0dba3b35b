"""`make bench` compares checkouts by what their users can see of them."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = "jupyter_jaxcb", "jupyter_jaxcb_worker"

pytestmark = pytest.mark.kept


def bench(checkout, *options):
    """Run the benchmarks of a checkout, with one turn for each row."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", "--turns", "1", "--pairs", "1", *map(str, options)],
        cwd=checkout, env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


@pytest.fixture
def slow_checkout(tmp_path):
    """Return a copy of this checkout in which it takes longer to decorate a function."""
    for name in (*PACKAGES, "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    slow = "\n_pure = pure\n\ndef pure(*args, **options):\n    sum(range(10**6))\n"
    with open(tmp_path / PACKAGES[0] / "__init__.py", "a") as file:
        file.write(f"{slow}    return _pure(*args, **options)\n")
    return tmp_path


def test_rows_use_public_names_only():
    """Otherwise they could not measure a checkout whose folders are others."""
    tree = ast.parse((ROOT / "benchmarks" / "rows.py").read_text())
    imported = [ast.unparse(node) for node in ast.walk(tree) if "Import" in type(node).__name__]
    assert {line for line in imported if "jupyter_jaxcb" in line} == {
        "import jupyter_jaxcb as jaxcb",
        "from jupyter_jaxcb import host_callback as hcb",
    }
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not [name for name in attributes if name.startswith("_") and not name.endswith("_")]


@pytest.mark.slow
def test_slower_row_is_marked_and_named(slow_checkout):
    done = bench(slow_checkout, "--against", ROOT, "--only", "decorate")
    assert done.returncode == 0, done.stderr
    row, verdict = done.stdout.splitlines()[-2:]
    assert row.startswith("decorate") and row.endswith(" slower")
    assert verdict == "slower by more than 3 %: decorate"
