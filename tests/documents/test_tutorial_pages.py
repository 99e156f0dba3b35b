"""The tutorials become pages of the documentation."""

import itertools
import json
import re

import pytest

from ._blocks import REPOSITORY
from ._saved import MIME, PATHS

TABLE = (REPOSITORY / "docs" / "tutorials.md").read_text(encoding="utf-8")


def test_every_notebook_is_in_the_table_of_tutorials():
    linked = re.findall(r"\]\(\.\./notebooks/([^)]+)\)", TABLE)
    assert sorted(linked) == [path.name for path in PATHS]


TUTORIALS = [path for path in PATHS if "about" not in path.stem]  # the others are for looking up
WORDS_PER_MINUTE, LINES_OF_CODE_PER_MINUTE = 200, 30
MINUTES = {"five": 5, "six": 6, "seven": 7, "eight": 8}


def sources(path, kind):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def last_cell(name):
    return sources(REPOSITORY / "notebooks" / name, "markdown")[-1]


def minutes(path):
    """Estimate the time to read a notebook."""
    words = sum(len(re.findall(r"\S*\w\S*", text)) for text in sources(path, "markdown"))
    lines = sum(len(re.findall(r"\S.*", code)) for code in sources(path, "code"))
    return words / WORDS_PER_MINUTE + lines / LINES_OF_CODE_PER_MINUTE


def test_there_are_at_most_twelve_tutorials():
    assert len(TUTORIALS) <= 12


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_takes_no_longer_than_it_says_and_at_most_eight_minutes(path):
    (said,) = re.findall(r"takes about (\w+) minutes", sources(path, "markdown")[0])
    assert minutes(path) <= MINUTES[said]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_says_first_what_one_can_do_after_it_and_has_an_exercise_last(path):
    texts = sources(path, "markdown")
    assert re.search(r"^After(wards| this tutorial) you (can|know) ", texts[0], re.MULTILINE)
    assert [text for text in texts if re.search("^## ", text, re.M)][-1].count("## Exercise") == 1


def test_each_tutorial_of_a_path_ends_with_a_link_to_the_next_and_the_last_with_one_to_the_table():
    paths = [
        re.findall(r"^\d+\. \[[^]]+\]\(\.\./notebooks/([^)]+)\)", section, re.MULTILINE)
        for section in TABLE.split("\n## ")[1:4]
    ]
    assert all(paths)
    for path in paths:
        for name, after in itertools.pairwise([*path, "../docs/tutorials.md"]):
            assert last_cell(name).endswith(f"]({after})"), name


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
