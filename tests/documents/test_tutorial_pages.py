"""The tutorials become pages of the documentation."""

import json
import re

from ._blocks import REPOSITORY
from ._saved import MIME, PATHS

TABLE = (REPOSITORY / "docs" / "tutorials.md").read_text(encoding="utf-8")


def test_every_notebook_is_in_the_table_of_tutorials():
    linked = re.findall(r"\]\(\.\./notebooks/([^)]+)\)", TABLE)
    assert sorted(linked) == [path.name for path in PATHS]


def test_every_notebook_has_a_page_and_stale_pages_are_removed(tutorial_pages, tmp_path):
    (tmp_path / "00-renamed.ipynb").write_text("{}")
    tutorial_pages.write_tutorials(REPOSITORY / "notebooks", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in PATHS]


def test_links_between_pages_are_rewritten(tutorial_pages):
    text = "[a](../docs/guide/x.md#y), [b](../README.md), [c](02-x.ipynb), [d](https://e.org/docs/)"
    expected = "[a](../guide/x.md#y), [b](../index.md), [c](02-x.ipynb), [d](https://e.org/docs/)"
    assert tutorial_pages.links_of_the_site(text) == expected


def test_page_shows_opened_host_traces_as_html(tutorial_pages):
    data = {MIME: {}, "text/html": ["<style></style><details class='jaxcb'>", "1 call</details>"]}
    cell = {"cell_type": "code", "source": "", "outputs": [{"data": data}]}
    page = tutorial_pages.page(json.loads(json.dumps({"cells": [cell]})))
    (output,) = page["cells"][0]["outputs"]
    assert output["data"] == {
        "text/html": "<style></style><details open class='jaxcb'>1 call</details>"
    }
