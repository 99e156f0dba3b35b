"""Install a wheel in an empty environment and use it: ``make dist``.

The environment first has only the wheel and its dependencies, with which the stack and a terminal
session must work. Then JupyterLab and pytest are added, and a real kernel, the list of extensions
and the pytest plugin are tried.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SESSION = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in (
    "%load_ext jupyter_jaxcb\\nimport jax, numpy as np, jupyter_jaxcb as jaxcb",
    "%%jax_callback pure --result x\\ndef double(x):\\n    return 2 * x\\n",
    "with jaxcb.record() as r:\\n    y = jax.vmap(double)(np.arange(3))",
    "assert len(r.recording) == 3 and y.tolist() == [0, 2, 4]",
):
    shell.run_cell(cell).raise_error()
"""
TEST = """
import numpy as np, jupyter_jaxcb as jaxcb

double = jaxcb.pure(lambda x: 2 * x, result="x")


def test_counts(host_calls):
    double(np.float32(1))
    assert host_calls["<lambda>"].calls == 1
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run `command` and return its output; exit if it fails."""
    print("$", *command[:6], flush=True)
    done = subprocess.run(
        command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\ndist: failed with {done.returncode}")
    return done.stdout


def use(wheel: Path, folder: Path) -> None:
    """Install and use the wheel in `folder`."""
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=folder)
    binaries = environment / ("Scripts" if sys.platform == "win32" else "bin")
    python = binaries / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    where = run(python, "-c", "import jupyter_jaxcb; print(jupyter_jaxcb.__file__)", cwd=folder)
    if str(environment) not in where:
        sys.exit(f"dist: the package was imported from {where}")
    (folder / "session.py").write_text(SESSION)
    print(run(python, "session.py", cwd=folder), end="")
    run(python, "-m", "pip", "install", "--quiet", "jupyterlab", "ipykernel", "pytest", cwd=folder)
    print(run(python, HERE / "in_kernel.py", cwd=folder), end="")
    listed = run(binaries / "jupyter", "labextension", "list", cwd=folder)
    lines = [line for line in listed.splitlines() if "jupyter-jaxcb v" in line]
    version = wheel.name.split("-")[1]
    if len(lines) != 1 or f"v{version} " not in lines[0] or "enabled" not in lines[0]:
        sys.exit(f"dist: unexpected output of jupyter labextension list:\n{listed}")
    print(lines[0].strip())
    (folder / "test_it.py").write_text(TEST)
    print(run(python, "-m", "pytest", "-q", "test_it.py", cwd=folder).splitlines()[-1])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="jaxcb-dist-") as temporary:
        use(Path(sys.argv[1]).resolve(), Path(temporary).resolve())
    print("dist: passed")
