"""The extension on two engines of ipyparallel, whose cells come by ``%%px`` from a terminal."""

import json
import re
from pathlib import Path

import pytest

MIME_TYPE = "application/vnd.jupyter-jaxcb.recording.v1+json"


@pytest.fixture(scope="module")
def ran(in_process):
    return in_process(Path(__file__).with_name("engines.py"))


@pytest.fixture(scope="module")
def found(ran):
    return json.loads(ran.stdout.splitlines()[-1])


def traces(cell):
    return [one for one in cell["outputs"] if MIME_TYPE in one["data"]]


def shown(cell):
    """All text of a cell, without colours."""
    texts = [one["data"].get("text/plain", "") for one in cell["outputs"]]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join([cell["stdout"], cell["stderr"], *texts]))


def test_loading_breaks_no_output_of_later_cells(ran, found):
    """A comm of ours would: the client takes comms of engines for widgets, and fails without."""
    assert "Uncaught exception" not in ran.stderr + found["loaded"]["stderr"]
    for name in ("loaded", "imported", "registered"):
        assert found[name]["raised"] == ""
    assert "I am 0" in shown(found["imported"]) and "I am 1" in shown(found["imported"])


def test_every_engine_shows_its_host_trace(found):
    """With its metadata, so that a notebook's front end shows the calls too."""
    own = traces(found["recorded"])
    assert [re.search(r"· (\d) calls ·", one["data"]["text/plain"])[1] for one in own] == ["2", "3"]
    assert all("text/html" in one["data"] and MIME_TYPE in one["metadata"] for one in own)


def test_engines_gather_what_each_recorded(found):
    """Cells of equal text are one place, though each engine has its own file name for them."""
    texts = [one["data"]["text/plain"] for one in found["gathered"]["outputs"]]
    assert len(texts) == 2
    for text in texts:
        assert "double · pure · 5 calls" in text
        assert "2 calls in process 0, 3 calls in process 1" in text
        assert text.count("line 2") == 1


def test_recordings_travel_to_the_client(found):
    assert found["pulled"] == ["<Recording of 5 host calls from 1 site in 2 processes>"] * 2


def test_errors_are_the_users_own_on_every_engine(found):
    text = shown(found["failed"])
    assert found["failed"]["raised"]
    assert len(re.findall(r"^ValueError: no luck$", text, re.MULTILINE)) == 2
    assert text.count("raised by the pure callback unlucky") == 2
    assert "JaxRuntimeError" not in text


def test_magics_work_on_every_engine(found):
    assert shown(found["explained"]).count("double · pure · 1 call per run") == 2
    assert len(re.findall(r"^double +pure +line \d", shown(found["listed"]), re.MULTILINE)) == 2


def test_an_interrupt_ends_the_cell_on_every_engine_and_the_next_one_works(found):
    assert found["interrupted"] == ["KeyboardInterrupt"] * 2
    assert shown(found["afterwards"]).count("8.0") == 2


def test_unloading_works_on_every_engine(found):
    assert found["unloaded"]["raised"] == ""
