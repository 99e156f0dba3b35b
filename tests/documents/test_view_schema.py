"""What is generated from the classes of documents is that of today, with one schema number."""

import importlib
import json
import re

import pytest

from jupyter_jaxcb.report import SCHEMA
from tests._site_schema import PLACE

from .conftest import REPOSITORY


@pytest.fixture(scope="module")
def view_schema(from_code):
    """The module that generates the schema."""
    return importlib.import_module("view_schema")


def test_schema_and_types_are_those_of_the_classes(view_schema):
    """``python docs/view_schema.py`` writes them."""
    files = view_schema.files()
    assert {path: path.read_text(encoding="utf-8") for path in files} == files
    assert len(files) == 3


def test_python_the_front_end_and_the_schema_have_the_same_number():
    source = REPOSITORY / "labextension" / "src" / "view" / "data" / "schema.ts"
    (number,) = re.findall(r"^export const SCHEMA = (\d+);", source.read_text(), re.MULTILINE)
    assert int(number) == SCHEMA == json.loads(PLACE.read_text(encoding="utf-8"))["version"]
