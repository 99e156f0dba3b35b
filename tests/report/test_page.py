"""The .html file of a recording: the view, all data and a list, in one file that loads nothing."""

import base64
import dataclasses
import hashlib
import json
from html.parser import HTMLParser

import pytest

from jupyter_jaxcb.recording import LoweredSite, Recorder, Recording, record_call
from jupyter_jaxcb.report.frontend import _mime, to_page

from ._several import BESSEL, SEVERAL, recordings, saved

HOSTILE = "</script><script>alert(1)</script><!-- <script> ]]> \u2028 \ud800"


class Page(HTMLParser):
    """The elements of a page.

    Attributes:
        tags: (name, attributes) of every element.
        texts: the text in all elements of a name, one string for each.
    """

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


@recordings
def test_page_has_everything_that_the_view_shows(recording, tmp_path):
    page = page_of(recording, tmp_path)
    data, _ = page.texts["script"]
    assert json.loads(data) == json.loads(json.dumps(to_page(recording)))


def test_page_runs_its_script_and_loads_nothing(tmp_path):
    page = page_of(SEVERAL, tmp_path)
    digest = base64.b64encode(hashlib.sha256(page.texts["script"][1].encode()).digest()).decode()
    (policy,) = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    named = [attrs for _, attrs in page.tags if {"src", "href", "srcset"} & set(attrs)]
    assert named == []
    assert "url(" not in "".join(page.texts["style"]) and "@import" not in page.texts["style"][0]


def test_page_has_a_list_for_readers_without_scripts(tmp_path):
    page = page_of(SEVERAL, tmp_path)
    assert "bessel" in page.texts["ul"][0] and "MainThread" in page.texts["svg"][0]
    assert ("details", {"class": "jaxcb", "open": None}) in page.tags
    assert "jax 0.0, backend cpu" in page.texts["main"][0]
    assert "no host calls" in page_of(Recording(), tmp_path).texts["main"][0]


def test_names_and_errors_are_text(tmp_path):
    recorder = Recorder(clock=lambda: 0)
    site = dataclasses.replace(BESSEL, function=HOSTILE, source=HOSTILE)
    record_call(recorder, LoweredSite(site, None, -1, (), ()), 1, 5, 9, HOSTILE)
    page = page_of(recorder.freeze(cells=[HOSTILE], environment={HOSTILE: HOSTILE}), tmp_path)
    assert len(page.texts["script"]) == 2
    (site,) = json.loads(page.texts["script"][0])["facts"]["sites"]
    assert (site["function"], site["errors"]) == (HOSTILE, [HOSTILE])


def test_built_script_can_stand_in_a_page(tmp_path):
    """Inside a script element these would end it, or hide its end."""
    script = page_of(SEVERAL, tmp_path).texts["script"][1].lower()
    assert len(script) > 10_000
    assert "</script" not in script and "<!--" not in script and "<script" not in script


def test_calls_that_the_front_end_does_not_accept_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(_mime, "MAX_PAGE_CALLS", 2)
    measured = to_page(SEVERAL)["measured"]
    assert measured["calls"]["rows"] == 2
    assert measured["calls_not_saved"] == len(SEVERAL) - 2


def test_page_without_the_built_front_end_is_refused_with_advice(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"page.js is missing. Run `make frontend`"):
        SEVERAL.save(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())
