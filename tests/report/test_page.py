"""The .html file of a recording: the view, all data and a list, in one file that loads nothing."""

import base64
import hashlib
from html.parser import HTMLParser

import pytest

from tests.interface import Recording

from ._several import SEVERAL, saved


class Page(HTMLParser):
    """The elements of a page, and the texts in those of each name, one string for each."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.texts, self._open = [], {}, []
        self.feed(content.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in set(self._open):
            self.texts[tag][-1] += data


def page_of(recording, folder):
    return Page(saved(recording, folder, ".html"))


def test_page_runs_its_script_and_loads_nothing(tmp_path):
    """What stands in the script would not end it, nor hide its end."""
    page = page_of(SEVERAL, tmp_path)
    script = page.texts["script"][1].lower()
    assert len(script) > 10_000
    assert "</script" not in script and "<!--" not in script and "<script" not in script
    digest = base64.b64encode(hashlib.sha256(page.texts["script"][1].encode()).digest()).decode()
    (policy,) = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    assert not [attrs for _, attrs in page.tags if {"src", "href", "srcset"} & set(attrs)]
    assert "url(" not in "".join(page.texts["style"]) and "@import" not in page.texts["style"][0]


def test_page_has_a_list_for_readers_without_scripts(tmp_path):
    page = page_of(SEVERAL, tmp_path)
    assert "bessel" in page.texts["ul"][0]
    assert ("details", {"class": "jaxcb", "open": None}) in page.tags
    assert "jax 0.0, backend cpu" in page.texts["main"][0]
    assert "no host calls" in page_of(Recording(), tmp_path).texts["main"][0]


def test_page_without_the_built_front_end_is_refused_with_advice(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"page.js is missing. Run `make frontend`"):
        SEVERAL.save(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())
