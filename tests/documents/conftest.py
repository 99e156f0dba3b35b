import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"


def load_module(path):
    """Import a file that is not part of a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def from_code():
    """The module that generates documentation pages from the code."""
    sys.path.insert(0, str(DOCS))  # as docs/conf.py does
    yield importlib.import_module("from_code")
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="session")
def json_schema(from_code):
    """The JSON Schema of a recording."""
    return importlib.import_module("json_schema").json_schema()


@pytest.fixture(scope="session")
def tutorial_pages(from_code):
    """The module that copies the notebooks into the documentation."""
    return importlib.import_module("tutorial_pages")


@pytest.fixture(scope="session")
def layers():
    """The module `tests/test_layers.py`, which has the table of allowed imports."""
    return load_module(REPOSITORY / "tests" / "test_layers.py")


@pytest.fixture(scope="session")
def pages(from_code):
    """The text of every page by its path in docs/, with its generated parts."""
    generated = {
        "facts.md": from_code.facts_page(),
        "magics.md": from_code.magics_page(),
        "refused.md": from_code.refused_page(),
        "schema.md": from_code.schema_page(),
        "statuses.md": importlib.import_module("status_tables").statuses_page(),
        "view.md": importlib.import_module("view_schema").view_page(),
    }
    found = {}
    for path in DOCS.glob("**/*.md"):
        if not path.relative_to(DOCS).parts[0].startswith("_"):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r"\{include\} (?:\.\./)?_generated/(\S+)", text):
                text += generated[name]
            found[path.relative_to(DOCS).as_posix()] = text
    return found
