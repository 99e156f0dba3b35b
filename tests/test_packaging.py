"""What is built can be installed without node, and holds the front end once."""

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

REPOSITORY = Path(__file__).parents[1]
SHARED = "share/jupyter/labextensions/jupyter-jaxcb/"


def build(kind, source, out, env=None):
    """Builds a wheel or an sdist in an environment of its own; returns its path."""
    made = subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--outdir", out, source],
        capture_output=True, text=True, env=env,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    (path,) = Path(out).iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", REPOSITORY, tmp_path_factory.mktemp("sdist"))


def shared(names):
    """The files of the labextension in a wheel."""
    return sorted(name.split(SHARED)[1] for name in names if SHARED in name)


def test_wheel_holds_the_front_end_once(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    own = shared(names)
    assert {"package.json", "install.json"} <= set(own)
    assert any(re.fullmatch(r"static/remoteEntry\..*\.js", name) for name in own)
    assert any(name.startswith("schemas/") for name in own)
    assert {"jupyter_jaxcb/static/widget.js", "jupyter_jaxcb/static/widget.css"} <= set(names)
    assert not [name for name in names if name.startswith("jupyter_jaxcb/labextension/")]
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]


def test_wheel_is_small_and_tells_nothing_of_where_it_was_built(wheel):
    archive = zipfile.ZipFile(wheel)
    assert wheel.stat().st_size < 400_000
    for name in archive.namelist():
        text = archive.read(name)
        for leak in (str(REPOSITORY), str(Path.home()) + "/", "registry.npmjs"):
            assert leak.encode() not in text, (leak, name)


def test_sdist_builds_the_same_wheel_without_node(sdist, wheel, tmp_path):
    # Python before 3.11.4 knows no filters; later ones want one.
    filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", **filtered)
    (source,) = (tmp_path / "source").iterdir()
    empty = tmp_path / "bin"
    empty.mkdir()
    again = build("wheel", source, tmp_path / "out", {**os.environ, "PATH": str(empty)})
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_versions_agree():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    package = json.loads((REPOSITORY / "labextension" / "package.json").read_text())
    assert package["version"] == project["version"]


def test_lock_file_has_no_addresses():
    lock = (REPOSITORY / "labextension" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert not re.search(r"https?://[^/\"]*(registry|npmjs)", lock)
