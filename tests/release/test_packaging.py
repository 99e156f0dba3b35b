"""Wheel and sdist can be installed without Node.js, and contain the front end once."""

import ast
import email
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
SHARED = "share/jupyter/labextensions/jupyter-jaxcb/"


def build(kind, source, out, env=None):
    """Build a wheel or an sdist in an isolated environment; return its path."""
    done = subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--outdir", out, source],
        capture_output=True, text=True, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = Path(out).iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", REPOSITORY, tmp_path_factory.mktemp("sdist"))


def labextension_files(names):
    """Return the files of the labextension in a wheel."""
    return sorted(name.split(SHARED)[1] for name in names if SHARED in name)


def test_wheel_holds_the_front_end_once(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    files = labextension_files(names)
    assert {"package.json", "install.json"} <= set(files)
    assert any(re.fullmatch(r"static/remoteEntry\..*\.js", name) for name in files)
    assert any(name.startswith("schemas/") for name in files)
    static = {"widget.js", "widget.css", "page.js", "page.css"}
    assert {f"jupyter_jaxcb/static/{name}" for name in static} <= set(names)
    assert not [name for name in names if name.startswith("jupyter_jaxcb/labextension/")]
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]


def test_wheel_is_small_and_contains_no_local_path(wheel):
    archive = zipfile.ZipFile(wheel)
    assert wheel.stat().st_size < 1_100_000  # no source maps, no duplicates
    for name in archive.namelist():
        text = archive.read(name)
        for leak in (str(REPOSITORY), str(Path.home()) + "/", "registry.npmjs"):
            assert leak.encode() not in text, (leak, name)


@pytest.mark.long
def test_sdist_builds_the_same_wheel_without_node(sdist, wheel, tmp_path):
    # Python before 3.11.4 has no filters; later versions require one.
    filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", **filtered)
    (source,) = (tmp_path / "source").iterdir()
    empty = tmp_path / "bin"
    empty.mkdir()
    again = build("wheel", source, tmp_path / "out", {**os.environ, "PATH": str(empty)})
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_lock_file_has_no_download_addresses():
    lock = (REPOSITORY / "labextension" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert not re.search(r"https?://[^/\"]*(registry|npmjs)", lock)


def extension_of(wheel):
    (name,) = [
        name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(f"{SHARED}package.json")
    ]
    return name


def test_version_is_the_same_everywhere(wheel):
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    package = json.loads((REPOSITORY / "labextension" / "package.json").read_text())
    lock = json.loads((REPOSITORY / "labextension" / "package-lock.json").read_text())
    (cited,) = re.findall(r"^version: (\S+)$", (REPOSITORY / "CITATION.cff").read_text(), re.M)
    built = re.match(r"jupyter_jaxcb-([^-]+)-", wheel.name)[1]
    extension = json.loads(zipfile.ZipFile(wheel).read(extension_of(wheel)))
    written = {
        "package.json": package["version"],
        "package-lock.json": lock["version"],
        "its root": lock["packages"][""]["version"],
        "CITATION.cff": cited,
        "wheel": built,
        "labextension": extension["version"],
    }
    assert written == dict.fromkeys(written, version)


def test_metadata_has_the_description_license_and_requirements(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_payload().startswith("# jupyter_jaxcb")
    plain = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in plain} == needed()


# Imported on demand; if they are missing, an error says what to install.
OPTIONAL = {"cloudpickle", "llvmlite", "numba", "pandas", "pytest"}
OURS = {"jupyter_jaxcb", "jupyter_jaxcb_worker"}
DISTRIBUTIONS = {"IPython": "ipython", "ml_dtypes": "ml-dtypes"}


def needed():
    """Return the distributions that the package imports, and ipywidgets, which anywidget needs."""
    found = {"ipywidgets"}
    for path in [path for name in OURS for path in (REPOSITORY / name).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    others = found - set(sys.stdlib_module_names) - OPTIONAL - OURS
    return {DISTRIBUTIONS.get(name, name) for name in others}
