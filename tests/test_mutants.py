"""The planted mistakes of `make mutants` fit the code; whether a test notices them, it tells."""

import subprocess
from collections import Counter
from pathlib import PurePosixPath

import pytest

from tests.mutants import ROOT, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_old_text_of_a_planted_mistake_occurs_once_in_its_file(mutant):
    assert mutant.is_at_home(ROOT)
    assert mutant.old != mutant.new


def modules_by_folder():
    """Return how many modules, besides its `__init__`, each folder of the sources has."""
    listed = subprocess.run(
        ["git", "ls-files", "jupyter_jaxcb*/*.py", "labextension/src/*.ts"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    paths = [PurePosixPath(name) for name in listed.splitlines()]
    return Counter(str(path.parent) for path in paths if path.stem != "__init__")


def test_each_folder_of_several_modules_has_two_planted_mistakes():
    planted = Counter(str(PurePosixPath(mutant.file).parent) for mutant in mutants())
    modules = modules_by_folder()
    assert [name for name, count in modules.items() if count > 1 and planted[name] < 2] == []
