"""`make bench` compares checkouts by what their users can see of them."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.mark.slow
def test_other_checkout_that_is_slower_is_imported_and_nothing_marked(slow_checkout):
    done = bench(ROOT, "--against", slow_checkout, "--only", "decorate")
    row, verdict = done.stdout.splitlines()[-2:]
    assert float(row.split()[-1]) < 0.5
    assert verdict == "slower by more than 3 %: no row"


@pytest.mark.slow
def test_without_another_checkout_rows_have_the_ratio_to_jax():
    done = bench(ROOT, "--only", "debug call in a loop, recorded")
    head, row = done.stdout.splitlines()[-2:]
    assert head.split()[-3:] == ["this", "/", "JAX"] and "other" not in done.stdout
    assert 0 < float(row.split()[-1]) < 1


@pytest.mark.slow
def test_row_that_the_other_checkout_lacks_says_why_and_the_others_are_measured(slow_checkout):
    with open(slow_checkout / PACKAGES[0] / "__init__.py", "a") as file:
        file.write("del debug_callback\n")
    done = bench(ROOT, "--against", slow_checkout, "--only", "call in a loop, recorded")
    rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    lacks = rows["debug call in a loop, recorded"]
    assert lacks.endswith(
        "other: AttributeError: module 'jupyter_jaxcb' has no attribute 'debug_callback'"
    )
    assert float(rows["pure call in a loop, recorded"].split()[-1]) > 0
    assert done.returncode == 0


@pytest.mark.slow
def test_folder_without_the_package_is_refused(tmp_path):
    done = bench(ROOT, "--against", tmp_path)
    assert done.returncode == 1 and not done.stdout
    assert f"{tmp_path} is no checkout of jupyter_jaxcb: its import found " in done.stderr
