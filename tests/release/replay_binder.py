"""Replay binder/ without Docker: ``make binder``, which needs the network.

repo2docker writes a Dockerfile for a copy of this checkout. Its commands that concern binder/ are
run in an empty environment with an empty home folder. The first notebook is executed there, and its
JupyterLab must open the notebook and load the extension.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
NOTEBOOK = "notebooks/01-quickstart.ipynb"
EXTENSION = "jupyter-jaxcb"
MIME_TYPE = "application/vnd.jupyter-jaxcb.recording.v1+json"
# Environment variables that configure package indexes and proxies are passed on.
_NETWORK = re.compile(r"(pip|npm)_|\w*(proxy$|cert|_ca_)", re.IGNORECASE)
_START_SECONDS = 120  # timeout for JupyterLab to respond


def run(command: list[str | Path] | str, **how) -> str:
    """Run `command` and return its output; exit if it fails."""
    shown = command if isinstance(command, str) else " ".join(map(str, command))
    print(f"$ {shown}", flush=True)
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **how,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\nbinder: failed with {done.returncode}: {shown}")
    return done.stdout


def check(holds: bool, message: str) -> None:
    """Exit with `message` unless `holds`."""
    if not holds:
        sys.exit(f"binder: {message}")


def copy_of_checkout(place: Path) -> None:
    """Copy the files a clone would have: no build output, nothing that git ignores."""
    listed = run(["git", "ls-files", "-co", "--exclude-standard"], cwd=REPOSITORY)
    for name in listed.splitlines():
        if (REPOSITORY / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, place / name)


def dockerfile(place: Path, tools: Path, home: Path) -> str:
    """Return the Dockerfile that repo2docker writes for the checkout at `place`."""
    run([sys.executable, "-m", "venv", tools])
    run([tools / "bin" / "pip", "install", "--quiet", "jupyter-repo2docker"])
    return run(
        [tools / "bin" / "jupyter-repo2docker", "--no-build", "--debug",
         "--user-id", "1000", "--user-name", "jovyan", place],
        env={**os.environ, "HOME": str(home)},
    )  # fmt: skip


def commands(text: str) -> list[str]:
    """Return the commands of a Dockerfile that concern binder/."""
    return [line for line in re.findall(r"^RUN (.+)$", text, re.MULTILINE) if "binder/" in line]


def check_dockerfile(text: str, place: Path) -> None:
    """Check the Python version, and that postBuild runs after the requirements and not as root."""
    wanted = (place / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    check(
        f"python={wanted}\n" in text,
        f"repo2docker would not use Python {wanted}, which runtime.txt requests",
    )
    check(
        commands(text)
        == [
            '${KERNEL_PYTHON_PREFIX}/bin/pip install --no-cache-dir -r "binder/requirements.txt"',
            "chmod +x binder/postBuild",
            "./binder/postBuild",
        ],
        f"repo2docker would run other commands than expected: {commands(text)}",
    )
    check(
        text.rindex("USER ${NB_USER}") < text.index("RUN ./binder/postBuild"),
        "repo2docker would run postBuild as root",
    )
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    check(
        running == wanted,
        f"runtime.txt requests Python {wanted}, but this is {running}. Run make binder "
        f"PYTHON=python{wanted}.",
    )


def execute_notebook(place: Path, environment: dict[str, str]) -> None:
    """Run the first notebook; check that it has host traces and no unintended errors."""
    run(
        "jupyter nbconvert --to notebook --execute --output executed.ipynb " + NOTEBOOK,
        cwd=place, env=environment,
    )  # fmt: skip
    notebook = json.loads((place / "notebooks" / "executed.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    traces = [
        output
        for cell in cells
        for output in cell["outputs"]
        if MIME_TYPE in output.get("data", {})
    ]
    failed = [
        cell["source"]
        for cell in cells
        if any(output["output_type"] == "error" for output in cell["outputs"])
        and "raises-exception" not in cell["metadata"].get("tags", [])
    ]
    check(not failed, f"cells of {NOTEBOOK} failed: {failed}")
    check(bool(traces), f"{NOTEBOOK} shows no host trace")
    print(f"{NOTEBOOK}: {len(cells)} cells, {len(traces)} host traces")


def open_lab(place: Path, environment: dict[str, str]) -> None:
    """Check that JupyterLab opens the notebook at the badge's path, with the extension enabled."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["jupyter", "lab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
         f"--ServerApp.port={port}", "--IdentityProvider.token="],
        cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        page = _page(f"http://127.0.0.1:{port}/lab/tree/{NOTEBOOK}", server)
    finally:
        server.kill()  # it has no kernels, and a thread of its own may keep it after `terminate`
        server.wait()
    written = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    check(written is not None, "JupyterLab's page has no configuration")
    configuration = json.loads(written[1])
    names = [extension["name"] for extension in configuration["federated_extensions"]]
    check(EXTENSION in names, f"JupyterLab loads {names}, without {EXTENSION}")
    check(
        EXTENSION not in str(configuration.get("disabledExtensions")),
        f"JupyterLab has {EXTENSION} disabled",
    )
    check(configuration.get("treePath") == NOTEBOOK, "JupyterLab does not open the notebook")
    print(f"JupyterLab opens {NOTEBOOK} and loads {EXTENSION}")


def _page(address: str, server: subprocess.Popen) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(address) as result:
                return result.read().decode()
        except OSError as error:
            check(server.poll() is None, "JupyterLab did not start")
            check(time.monotonic() < deadline, f"JupyterLab does not respond: {error}")
            time.sleep(0.2)


def replay(folder: Path) -> None:
    """Do all steps in `folder`."""
    place, home, environment = (folder / name for name in ("checkout", "home", "environment"))
    place.mkdir()
    home.mkdir()
    copy_of_checkout(place)
    text = dockerfile(place, folder / "tools", home)
    check_dockerfile(text, place)
    run([sys.executable, "-m", "venv", environment])
    inside = {
        "HOME": str(home),
        "PATH": f"{environment}/bin:/usr/bin:/bin",
        "KERNEL_PYTHON_PREFIX": str(environment),
        "REPO_DIR": str(place),
        **{name: value for name, value in os.environ.items() if _NETWORK.match(name)},
    }
    for command in commands(text):
        run(command, cwd=place, env=inside)
    listed = run("jupyter labextension list", cwd=place, env=inside)
    check(
        re.search(rf"{EXTENSION} v\S+ .*enabled.*OK", listed) is not None,
        f"jupyter labextension list does not have {EXTENSION} enabled:\n{listed}",
    )
    execute_notebook(place, inside)
    open_lab(place, inside)
    left = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) >> 20
    check(left < 20, f"postBuild leaves {left} MiB in the repository")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", help="an empty folder to work in, which is not removed")
    kept = parser.parse_args().keep
    if kept:
        replay(Path(kept).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="jaxcb-binder-") as temporary:
            replay(Path(temporary))
    print("binder: passed")
