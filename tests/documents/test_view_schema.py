"""The JSON Schema of a call site is that of its classes, and has one number in both languages."""

import importlib
import json
import re

import pytest

from jupyter_jaxcb.report import SCHEMA
from tests._site_schema import PLACE, check_beside

from .conftest import REPOSITORY


@pytest.fixture(scope="module")
def view_schema(from_code):
    """The module that generates the schema."""
    return importlib.import_module("view_schema")


def test_schema_in_the_package_is_that_of_the_classes(view_schema):
    """``python docs/view_schema.py`` writes it."""
    assert PLACE.read_text(encoding="utf-8") == view_schema.schema_text()


def test_schema_is_one_and_says_what_each_property_means():
    import jsonschema  # takes longer than this test

    schema = json.loads(PLACE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for kind in (schema, *schema["$defs"].values()):
        assert kind["description"]
        for name, one in kind.get("properties", {}).items():
            assert one["description"], name


def test_page_has_every_property(pages):
    schema = json.loads(PLACE.read_text(encoding="utf-8"))
    (_, section) = pages["schema.md"].split("An object:\n\n| key", 1)
    for kind in (schema, *schema["$defs"].values()):
        for name in kind.get("properties", {}):
            assert f"\n| `{name}` |" in section


def test_python_the_front_end_and_the_schema_have_the_same_number():
    source = REPOSITORY / "labextension" / "src" / "view" / "data" / "parse" / "known.ts"
    (number,) = re.findall(r"^export const SCHEMA = (\d+);", source.read_text(), re.MULTILINE)
    assert int(number) == SCHEMA == json.loads(PLACE.read_text(encoding="utf-8"))["version"]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("Part", ["loud", "words"]),
        ("CallbackView", {"name": "f"}),
        ("ProgressView", {"elapsed_ns": 1, "since_first_ns": 0, "calls": 0, "rate": 0.5,
                          "expected": None, "running": [], "sites": [{}], "not_sent": 0}),
    ],
)  # fmt: skip
def test_schema_refuses_what_stands_beside_sites_if_it_is_malformed(kind, data):
    import jsonschema  # takes longer than this test

    with pytest.raises(jsonschema.ValidationError, match=r"is not one of|is a required property"):
        check_beside(kind, data)
